package verify

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// maxRequests is the maximum number of concurrent requests.
const maxRequests = 8

// runParallel calls do for each i from 0 to n-1, with up to maxRequests calls at once. If a call fails, it
// starts no more calls, and returns the error. If ctx ends, it returns the error of ctx.
func runParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(maxRequests)
	for i := range n {
		work.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return do(ctx, i)
		})
	}
	return work.Wait()
}
