package verify

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/rbac"
)

// How many reviews are asked of one namespace's accounts.
const (
	maxGranted = 2000 // that the RBAC objects permit
	maxDenied  = 500  // that they do not
)

// reviews returns what to ask the cluster about the accounts of e: what the RBAC
// objects permit in every namespace, and some of what they do not. Where that is too
// much, each account and each namespace has its share.
func reviews(e *Evidence) []Review {
	var may, mayNot []Review
	for _, a := range e.Accounts {
		had := rbac.NewSet(grants(a.Permissions))
		for _, g := range grants(a.Permissions) {
			if g.Role == "" {
				may = append(may, reviewOf(a, g))
			}
		}
		for _, g := range probes(a, e.Targets) {
			if !had.Covers(g) {
				mayNot = append(mayNot, reviewOf(a, g))
			}
		}
	}
	return append(shares(may, maxGranted), shares(mayNot, maxDenied)...)
}

func reviewOf(a Account, g rbac.Grant) Review {
	resource, sub, _ := strings.Cut(g.Resource, "/")
	return Review{
		Account: user(a.subject()), Namespace: g.Namespace, Verb: g.Verb, Group: g.Group,
		Resource: resource, Subresource: sub, Name: g.Name, Path: g.URL,
	}
}

// probes returns what an account should rather not be able to do, in the namespaces
// that it works in and in others.
func probes(a Account, targets []string) []rbac.Grant {
	out := []rbac.Grant{
		{Verb: "*", Group: "*", Resource: "*"},
		{Verb: "impersonate", Resource: "users"},
		{Verb: "escalate", Group: rbacGroup, Resource: "clusterroles"},
		{Verb: "delete", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Verb: "delete", Resource: "nodes"},
		{Verb: "delete", Resource: "namespaces"},
	}
	where := append([]string{a.Namespace, "default", "kube-system"}, targets...)
	slices.Sort(where)
	for _, ns := range slices.Compact(where) {
		out = append(
			out,
			rbac.Grant{Namespace: ns, Verb: "get", Resource: "secrets"},
			rbac.Grant{Namespace: ns, Verb: "create", Resource: "pods"},
			rbac.Grant{Namespace: ns, Verb: "delete", Group: "apps", Resource: "deployments"},
			rbac.Grant{Namespace: ns, Verb: "create", Group: rbacGroup, Resource: "rolebindings"},
		)
	}
	return out
}

// shares returns at most limit of all, sorted: of each account in each namespace
// about as many, and of these always the same.
func shares(all []Review, limit int) []Review {
	if len(all) > limit {
		all = dealt(all)[:limit]
	}
	slices.SortFunc(all, Review.compare)
	return all
}

// dealt returns reviews so that accounts and namespaces take turns.
func dealt(all []Review) []Review {
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

// ask asks a cluster, several reviews at once.
func ask(ctx context.Context, r Reader, reviews []Review) ([]Answer, error) {
	out := make([]Answer, len(reviews))
	err := each(ctx, len(reviews), func(ctx context.Context, i int) (err error) {
		out[i].Review = reviews[i]
		out[i].Allowed, err = r.Allowed(ctx, reviews[i])
		return err
	})
	return out, err
}

// compareAnswers returns what the cluster now says of an account otherwise than
// before, where what its RBAC objects permitted and permit does not tell why.
func compareAnswers(s rbac.Subject, had, have rbac.Set, before, after []Answer) []Finding {
	now := map[Review]bool{}
	for _, a := range after {
		now[a.Review] = a.Allowed
	}
	var lost, gained []rbac.Grant
	for _, a := range before {
		g := a.grant()
		allowed, asked := now[a.Review]
		if !asked || allowed == a.Allowed || a.Account != user(s) {
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
		grouped(RightLost, s, "is refused by the API server", lost),
		grouped(RightGained, s, "is now permitted by the API server", gained)...,
	)
}

func (r Review) grant() rbac.Grant {
	g := rbac.Grant{Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Name: r.Name, URL: r.Path}
	if r.Subresource != "" {
		g.Resource += "/" + r.Subresource
	}
	return g
}
