package gitrepo

import "io"

// TakesToken is acceptsToken.
func TakesToken(remote string) (bool, error) { return acceptsToken(remote) }

// CheckPack is checkPack.
func CheckPack(pack io.ReadSeeker) error { return checkPack(pack) }
