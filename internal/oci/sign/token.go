package sign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Token returns an OpenID Connect token for keyless signing: the value of SIGSTORE_ID_TOKEN, which
// GitLab and others set, or a token requested from GitHub, in a GitHub job with the permission
// 'id-token: write'.
func Token(ctx context.Context, getenv func(string) string) (string, error) {
	if token := getenv("SIGSTORE_ID_TOKEN"); token != "" {
		return token, nil
	}
	tokenURL := getenv("ACTIONS_ID_TOKEN_REQUEST_URL")
	if tokenURL == "" {
		return "", errors.New("no identity token: set SIGSTORE_ID_TOKEN, specify a file with --identity-token, or grant the GitHub job the permission 'id-token: write'")
	}
	token, err := requestGitHubToken(ctx, tokenURL, getenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN"))
	if err != nil {
		return "", fmt.Errorf("requesting a token from GitHub: %w", err)
	}
	return token, nil
}

func requestGitHubToken(ctx context.Context, tokenURL, secret string) (string, error) {
	u, err := url.Parse(tokenURL)
	if err != nil {
		return "", errors.New("ACTIONS_ID_TOKEN_REQUEST_URL is not a URL")
	}
	query := u.Query()
	query.Set("audience", "sigstore")
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	client := http.Client{Transport: guardedTransport{}, Timeout: requestTimeout}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // ignore the error: the response was only read
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server returned status %d", resp.StatusCode)
	}
	var answer struct {
		Value string `json:"value"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Value == "" {
		return "", errors.New("the response contains no token")
	}
	return strings.TrimSpace(answer.Value), nil
}
