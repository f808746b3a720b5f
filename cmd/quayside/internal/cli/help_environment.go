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
			  XDG_CACHE_HOME          parent directory of the cache, quayside/ (default: ~/.cache)
			  KUBECONFIG              kubeconfig files (default: ~/.kube/config)
			  TMPDIR                  directory for large temporary files
			  QUAYSIDE_ALLOW_OUTSIDE  directories outside of the Git repository, or of the workspace if there is none,
			                          that quayside.yaml and declarations may name files in; a list like PATH

			Registries:
			  REGISTRY_AUTH_FILE      logins, as written by 'podman login'; quayside then reads
			                          $XDG_RUNTIME_DIR/containers/auth.json, $XDG_CONFIG_HOME/containers/auth.json,
			                          $DOCKER_CONFIG/config.json (default: ~/.docker/config.json)
			  HTTPS_PROXY, HTTP_PROXY, NO_PROXY
			                          proxy for registries and forges
			  SSL_CERT_FILE, SSL_CERT_DIR
			                          trusted certificates, instead of the system's

			Git and forges:
			  GIT_TOKEN               password for a push over https, and token for pull requests and comments
			  GIT_AUTHOR_NAME, GIT_AUTHOR_EMAIL
			                          author of commits (default: Git's configuration)
			  GITHUB_SERVER_URL, GITHUB_API_URL, GITHUB_REPOSITORY, CI_SERVER_URL, CI_API_V4_URL, CI_PROJECT_PATH
			                          set by CI jobs: the forge and its repository
			  GITHUB_BASE_REF, CI_MERGE_REQUEST_DIFF_BASE_SHA, CI_MERGE_REQUEST_TARGET_BRANCH_NAME,
			  BITBUCKET_PR_DESTINATION_BRANCH, SYSTEM_PULLREQUEST_TARGETBRANCH, CHANGE_TARGET,
			  CI_COMMIT_TARGET_BRANCH, BUILDKITE_PULL_REQUEST_BASE_BRANCH, PULL_BASE_SHA
			                          set by CI jobs of pull requests: the default of 'quayside diff --base'

			Signing:
			  COSIGN_PASSWORD         password of the private key of --sign
			  SIGSTORE_ID_TOKEN       identity token for --sign keyless; GitHub Actions provides one with
			                          ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN

			Output:
			  NO_COLOR                print no colors; TERM=dumb does the same
			  KUBECTL_EXTERNAL_DIFF   program that 'quayside diff --text' runs

			Memory:
			  GOMEMLIMIT, GOGC, GOMAXPROCS
			                          limits of the Go runtime`),
	}
}
