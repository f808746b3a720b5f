package sign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxToken is more than any token takes, in bytes.
const maxToken = 64 << 10

// Token returns the token that proves who the program runs for: what the
// environment holds in SIGSTORE_ID_TOKEN, as GitLab and others set it, or what
// GitHub gives to a job that may ask for one.
func Token(ctx context.Context, getenv func(string) string) (string, error) {
	if token := getenv("SIGSTORE_ID_TOKEN"); token != "" {
		return token, nil
	}
	where := getenv("ACTIONS_ID_TOKEN_REQUEST_URL")
	if where == "" {
		return "", errors.New("no token proves an identity: set SIGSTORE_ID_TOKEN, name a file with --identity-token, or give the job on GitHub the permission 'id-token: write'")
	}
	token, err := askGitHub(ctx, where, getenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN"))
	if err != nil {
		return "", fmt.Errorf("asking GitHub for a token: %w", err)
	}
	return token, nil
}

func askGitHub(ctx context.Context, where, secret string) (string, error) {
	u, err := url.Parse(where)
	if err != nil {
		return "", errors.New("ACTIONS_ID_TOKEN_REQUEST_URL is no URL")
	}
	query := u.Query()
	query.Set("audience", "sigstore")
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	client := http.Client{Transport: guarded{}, Timeout: patience}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("it answered %d", resp.StatusCode)
	}
	var answer struct {
		Value string `json:"value"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxToken)).Decode(&answer); err != nil || answer.Value == "" {
		return "", errors.New("its answer holds none")
	}
	return strings.TrimSpace(answer.Value), nil
}
