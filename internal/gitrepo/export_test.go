package gitrepo

// TakesToken is acceptsToken.
func TakesToken(remote string) (bool, error) { return acceptsToken(remote) }
