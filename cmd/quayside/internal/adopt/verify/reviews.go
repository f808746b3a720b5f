package verify

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// Maximum numbers of access reviews for a namespace.
const (
	maxGranted = 2000 // for permissions in the RBAC objects
	maxDenied  = 500  // for permissions that must be denied
)

// buildReviews returns access reviews for the accounts of e. There is one for each permission in the RBAC
// objects, and there are some that must be denied. If there are too many, it selects some for each account and
// namespace.
func buildReviews(e *Evidence) []Review {
	var denied []Review
	for _, a := range e.Accounts {
		had := k8s.NewGrantSet(a.Permissions)
		for _, g := range probeGrants(a, e.Targets) {
			if !had.Covers(g) {
				denied = append(denied, reviewOf(a, g))
			}
		}
	}
	return append(limitReviews(e.grantedReviews(), maxGranted), limitReviews(denied, maxDenied)...)
}

// grantedReviews returns a review for each permission of the accounts.
func (e *Evidence) grantedReviews() []Review {
	var out []Review
	for _, a := range e.Accounts {
		for _, g := range a.Permissions {
			if g.Role == "" {
				out = append(out, reviewOf(a, g))
			}
		}
	}
	return out
}

func reviewOf(a Account, g k8s.Grant) Review {
	resource, sub, _ := strings.Cut(g.Resource, "/")
	return Review{
		Account: subjectName(a.subject()), Namespace: g.Namespace, Verb: g.Verb, Group: g.Group,
		Resource: resource, Subresource: sub, Name: g.Name, Path: g.URL,
	}
}

// probeGrants returns permissions that an account probably does not have, in its own and in other namespaces.
func probeGrants(a Account, targets []string) []k8s.Grant {
	out := []k8s.Grant{
		{Verb: "*", Group: "*", Resource: "*"},
		{Verb: "impersonate", Resource: "users"},
		{Verb: "escalate", Group: k8s.RBACGroup, Resource: "clusterroles"},
		{Verb: "delete", Group: k8s.CRDGroup, Resource: "customresourcedefinitions"},
		{Verb: "delete", Resource: "nodes"},
		{Verb: "delete", Resource: "namespaces"},
	}
	where := append([]string{a.Namespace, "default", "kube-system"}, targets...)
	slices.Sort(where)
	for _, ns := range slices.Compact(where) {
		out = append(
			out,
			k8s.Grant{Namespace: ns, Verb: "get", Resource: "secrets"},
			k8s.Grant{Namespace: ns, Verb: "create", Resource: "pods"},
			k8s.Grant{Namespace: ns, Verb: "delete", Group: "apps", Resource: "deployments"},
			k8s.Grant{Namespace: ns, Verb: "create", Group: k8s.RBACGroup, Resource: "rolebindings"},
		)
	}
	return out
}

// limitReviews returns at most limit reviews, sorted. It selects about the same number for each account and
// namespace. For the same reviews, the selection is always the same.
func limitReviews(all []Review, limit int) []Review {
	if len(all) > limit {
		all = interleaveReviews(all)[:limit]
	}
	slices.SortFunc(all, Review.compare)
	return all
}

// interleaveReviews sorts reviews so that accounts and namespaces alternate.
func interleaveReviews(all []Review) []Review {
	type turn struct {
		Review
		round int
		by    [sha256.Size]byte
	}
	turns := make([]turn, len(all))
	for i, r := range all {
		turns[i] = turn{Review: r, by: sha256.Sum256([]byte(r.text()))}
	}
	slices.SortFunc(turns, func(a, b turn) int { return slices.Compare(a.by[:], b.by[:]) })
	rounds := map[[2]string]int{}
	for i, t := range turns {
		key := [2]string{t.Account, t.Namespace}
		turns[i].round = rounds[key]
		rounds[key]++
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return a.round - b.round })
	out := make([]Review, len(turns))
	for i, t := range turns {
		out[i] = t.Review
	}
	return out
}

func (r Review) text() string {
	return strings.Join([]string{r.Account, r.Namespace, r.Group, r.Resource, r.Subresource, r.Name, r.Path, r.Verb}, "\x00")
}

func (r Review) compare(s Review) int { return strings.Compare(r.text(), s.text()) }

// askReviews sends access reviews to a cluster, several at once. It returns the answers in the same order.
func askReviews(ctx context.Context, r Reader, reviews []Review) ([]Answer, error) {
	out := make([]Answer, len(reviews))
	err := runParallel(ctx, len(reviews), func(ctx context.Context, i int) (err error) {
		out[i].Review = reviews[i]
		out[i].Allowed, err = r.Allowed(ctx, reviews[i])
		return err
	})
	return out, err
}

// compareAnswers returns findings about an account whose access reviews have other results than before. It
// ignores a result if a change of RBAC objects explains it.
func compareAnswers(s k8s.Subject, had, have k8s.GrantSet, before, after []Answer) []Finding {
	now := map[Review]bool{}
	for _, a := range after {
		now[a.Review] = a.Allowed
	}
	var lost, gained []k8s.Grant
	for _, a := range before {
		g := a.grant()
		allowed, asked := now[a.Review]
		if !asked || allowed == a.Allowed || a.Account != subjectName(s) {
			continue
		}
		if might, may := had.Covers(g), have.Covers(g); might != may && may == allowed {
			continue
		}
		if allowed {
			gained = append(gained, g)
		} else {
			lost = append(lost, g)
		}
	}
	return append(
		groupFindings(PermissionLost, s, "lost permissions, according to the API server,", lost),
		groupFindings(PermissionGained, s, "gained permissions, according to the API server,", gained)...,
	)
}

func (r Review) grant() k8s.Grant {
	g := k8s.Grant{Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Name: r.Name, URL: r.Path}
	if r.Subresource != "" {
		g.Resource += "/" + r.Subresource
	}
	return g
}
