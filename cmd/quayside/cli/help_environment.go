package cli

import "github.com/spf13/cobra"

// newHelpEnvironment returns the help topic about environment variables.
func newHelpEnvironment(*app) *cobra.Command {
	return &cobra.Command{
		Use:   "environment",
		Short: "Environment variables that quayside reads",
		Long: Doc(`
			Environment variables that quayside reads.

			Files:
			  XDG_CACHE_HOME          what was fetched is kept in quayside/ below it (default: ~/.cache)
			  KUBECONFIG              the files that name clusters (default: ~/.kube/config)
			  TMPDIR                  where large files are put together

			Registries:
			  REGISTRY_AUTH_FILE      logins, as 'podman login' writes them; also read, after it:
			                          $XDG_RUNTIME_DIR/containers/auth.json, $XDG_CONFIG_HOME/containers/auth.json,
			                          $DOCKER_CONFIG/config.json (default: ~/.docker/config.json)
			  HTTPS_PROXY, HTTP_PROXY, NO_PROXY
			                          the proxy for registries and forges
			  SSL_CERT_FILE, SSL_CERT_DIR
			                          certificates to trust, in place of the system's

			Git and forges:
			  GIT_TOKEN               password for a push over https, and token for pull requests and comments
			  GIT_AUTHOR_NAME, GIT_AUTHOR_EMAIL
			                          author of commits (default: Git's configuration)
			  GITHUB_SERVER_URL, GITHUB_API_URL, GITHUB_REPOSITORY, CI_SERVER_URL, CI_API_V4_URL, CI_PROJECT_PATH
			                          which forge a CI job runs on

			Signing:
			  COSIGN_PASSWORD         of the private key of --sign
			  SIGSTORE_ID_TOKEN       the token that proves the identity for --sign keyless; in GitHub's CI
			                          ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN get one

			Output:
			  NO_COLOR                print no colours; neither does TERM=dumb
			  KUBECTL_EXTERNAL_DIFF   the program that shows what 'quayside diff --text' finds

			Memory:
			  GOMEMLIMIT, GOGC, GOMAXPROCS
			                          as every Go program reads them`),
	}
}
