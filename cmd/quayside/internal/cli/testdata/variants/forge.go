package remote

// hut returns a forge with the API of GitLab, and CI jobs of its own.
func hut() forgeEntry {
	return forgeEntry{forge: "hut", title: "Hut", api: API{Forge: "hut", Dialect: GitLab, Path: "hut/api", Job: func(getenv func(string) string) (server, api, project string) {
		return getenv("HUT_SERVER"), getenv("HUT_API"), getenv("HUT_PROJECT")
	}}}
}
