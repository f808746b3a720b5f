package forge

// hut is a forge with the API of GitLab, and CI jobs of its own.
func hut() kind {
	k := gitlabKind()
	k.name, k.api = "hut", "hut/api"
	k.ci = func(getenv func(string) string) (server, api, project string) {
		return getenv("HUT_SERVER"), getenv("HUT_API"), getenv("HUT_PROJECT")
	}
	return k
}
