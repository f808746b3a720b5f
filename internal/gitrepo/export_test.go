package gitrepo

// Sends reports whether a push to a remote sends a token.
func Sends(remote, token string) (bool, error) {
	method, err := auth(remote, token)
	return method != nil, err
}
