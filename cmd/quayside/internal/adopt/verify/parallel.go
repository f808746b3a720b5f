package verify

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// maxRequests is the maximum number of concurrent requests.
const maxRequests = 8

// runParallel calls do for 0 to n-1, up to maxRequests concurrently, until one call fails. It returns
// the error of that call, or of ctx.
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
