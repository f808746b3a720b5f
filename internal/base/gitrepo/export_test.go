package gitrepo

// TakesToken is takesToken.
func TakesToken(remote string) (bool, error) { return takesToken(remote) }
