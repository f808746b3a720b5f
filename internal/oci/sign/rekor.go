package sign

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"

	runtime "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/sigstore/rekor/pkg/generated/client/entries"
	"github.com/sigstore/rekor/pkg/generated/models"
)

// rekor is a client for a Rekor log. The default client of the library follows redirects to any
// address, reads responses of any length, and panics if a field is missing.
type rekor struct{ entries.ClientService }

func newRekor(service string) (rekor, error) {
	u, err := url.Parse(service)
	if err != nil {
		return rekor{}, err
	}
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: guardedTransport{}}
	client.RetryMax = maxAttempts
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	client.Logger = nil
	transport := runtime.NewWithClient(u.Host, cmp.Or(u.Path, "/"), []string{u.Scheme}, client.StandardClient())
	return rekor{entries.New(transport, strfmt.Default)}, nil
}

// CreateLogEntry implements sign.RekorClient.
func (r rekor) CreateLogEntry(p *entries.CreateLogEntryParams, opts ...entries.ClientOption) (*entries.CreateLogEntryCreated, error) {
	created, err := r.ClientService.CreateLogEntry(p, opts...)
	if err != nil {
		return nil, err
	}
	return created, checkEntry(created.Payload[created.ETag])
}

// GetLogEntryByUUID implements sign.RekorClient.
func (r rekor) GetLogEntryByUUID(p *entries.GetLogEntryByUUIDParams, opts ...entries.ClientOption) (*entries.GetLogEntryByUUIDOK, error) {
	got, err := r.ClientService.GetLogEntryByUUID(p, opts...)
	if err != nil {
		return nil, err
	}
	if len(got.Payload) != 1 {
		return nil, errIncompleteEntry
	}
	for _, entry := range got.Payload {
		err = checkEntry(entry)
	}
	return got, err
}

var errIncompleteEntry = errors.New("the log's response is not a complete entry")

// checkEntry returns an error if the log entry lacks a field that the library dereferences.
func checkEntry(e models.LogEntryAnon) error {
	if v := e.Verification; e.LogID != nil && e.LogIndex != nil && e.IntegratedTime != nil && v != nil {
		if p := v.InclusionProof; p != nil && p.RootHash != nil && p.LogIndex != nil && p.TreeSize != nil && p.Checkpoint != nil {
			return nil
		}
	}
	return errIncompleteEntry
}
