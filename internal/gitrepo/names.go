package gitrepo

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// fullNames returns the possible meanings of a name from the user as full names: hashes of commits, references
// such as "refs/heads/main", and HEAD.
func (r *Repo) fullNames(name string) ([]string, error) {
	if regexp.MustCompile(`^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})$`).MatchString(name) || strings.HasPrefix(name, "refs/") {
		return []string{name}, nil
	}
	if name == "@" {
		return []string{"HEAD"}, nil
	}
	found, err := r.commitsFrom(name)
	if err != nil {
		return nil, err
	}
	for _, full := range possibleRefs(name) {
		if _, err := r.git.Reference(full, true); err == nil {
			found = append(found, string(full))
		} else if !errors.Is(err, plumbing.ErrReferenceNotFound) {
			return nil, err
		}
	}
	return found, nil
}

// possibleRefs returns the references that Git tries for a name, in the order in which Git tries them.
func possibleRefs(name string) []plumbing.ReferenceName {
	var out []plumbing.ReferenceName
	if regexp.MustCompile(`^([A-Z_]+_)?HEAD$`).MatchString(name) {
		out = append(out, plumbing.ReferenceName(name))
	}
	for _, pattern := range plumbing.RefRevParseRules {
		full := plumbing.ReferenceName(fmt.Sprintf(pattern, name))
		if strings.HasPrefix(string(full), "refs/") && full.Validate() == nil {
			out = append(out, full)
		}
	}
	return out
}

// commitsFrom returns the hashes of the commits and tags that begin with the given digits. As in
// Git, there must be at least four digits.
func (r *Repo) commitsFrom(digits string) ([]string, error) {
	if digits = strings.ToLower(digits); !regexp.MustCompile(`^[0-9a-f]{4,39}$`).MatchString(digits) {
		return nil, nil
	}
	prefix, err := hex.DecodeString(digits[:len(digits)&^1])
	if err != nil {
		return nil, err
	}
	hashes, err := r.objects.HashesWithPrefix(prefix)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, h := range hashes {
		if !strings.HasPrefix(h.String(), digits) {
			continue
		}
		if _, err := r.commitAt(h); err == nil {
			out = append(out, h.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
