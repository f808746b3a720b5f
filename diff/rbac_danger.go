package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

func rbacRules() []RuleInfo {
	return []RuleInfo{
		{"rbac.cluster-admin", Critical, "full control of the cluster", "control of this account is control of the cluster"},
		{"rbac.escalate", Critical, "escalate or bind roles", "the verbs escalate and bind allow granting permissions that the account lacks: it can make itself cluster-admin"},
		{"rbac.impersonate", Critical, "impersonate users, groups or accounts", "the account can act as any user, including cluster-admin"},
		{"rbac.nodes-proxy", Critical, "access the kubelet API", "nodes/proxy reaches the kubelet without admission and audit: it can run commands in every pod of the node"},
		{"rbac.wildcard", High, "resources or API groups by wildcard", "wildcards include future kinds, and Secrets in the core group"},
		{"rbac.secrets", High, "read or write Secrets", "Secrets hold credentials, including tokens of other accounts; list and watch return their content"},
		{"rbac.rbac-write", High, "write roles or bindings", "the account can grant each of its permissions to any subject"},
		{"rbac.pods-exec", High, "run commands in other pods", "exec, attach and ephemeral containers give access to the pod's identity and data, port-forward to its ports"},
		{"rbac.tokens", Critical, "create tokens of ServiceAccounts", "the account gets the permissions of the named ServiceAccount, or of every ServiceAccount in scope; the ServiceAccounts of the controllers in kube-system can make themselves cluster-admin"},
		{"rbac.csr-approve", High, "approve or sign certificates", "a signed client certificate can carry any identity"},
		{"rbac.webhook-write", High, "write admission configuration", "an admission webhook or policy can read, change or block every write in the cluster"},
		{"rbac.engine-write", High, "write objects that install others", "an account that writes what a controller installs or runs has the permissions of that controller"},
		{"rbac.constraints-use", High, "use or write SecurityContextConstraints", "pods of the account may run privileged, or with access to the node"},
		{"rbac.certificate-write", High, "write issuers and requests of certificates", "a client certificate can carry any identity, a trust bundle can contain any authority"},
		{"rbac.configuration-write", High, "write the configuration of the cluster", "the account changes how the cluster authenticates users, runs pods or serves requests"},
		{"rbac.traffic-write", High, "direct or allow traffic", "the account can send the traffic of other workloads elsewhere, or open their ports"},
		{"rbac.apiservice-write", High, "write APIServices", "an APIService serves a part of the Kubernetes API and receives the credentials of its users"},
		{"rbac.workload-write", High, "run pods", "a pod can use any ServiceAccount and mount any Secret of its namespace"},
		{"rbac.volume-write", High, "make PersistentVolumes", "a PersistentVolume of type hostPath reads and writes the node's disk"},
		{"rbac.crd-write", High, "write CRDs", "deleting a CRD deletes all its custom resources; changing a CRD changes their validation"},
		{"rbac.node-write", Medium, "change nodes", "labels and taints decide where other workloads run"},
		{"rbac.namespace-write", Medium, "change namespaces", "the Pod Security level is a label of the Namespace; deleting a Namespace deletes everything in it"},
		{"rbac.urls", Medium, "non-resource URLs", "non-resource URLs reach debugging and metrics endpoints of the API server"},
		{"rbac.unknown-role", High, "role outside of the rendered manifests", "the referenced role defines the permissions"},
		{"rbac.aggregated", Low, "permissions added to a built-in role", "every subject bound to that role gets them"},
		{"rbac.aggregation-cycle", Critical, "ClusterRoles that aggregate each other", "the controller copies rules around the cycle: a rule that was once in one of the roles stays in all of them, although no manifest has it"},
		{"rbac.tool-role", High, "permissions added to a role of another tool", "every subject that is bound to that role in the cluster gets them; the binding is outside of the rendered manifests"},
		{"rbac.everyone", Critical, "permission for all users or accounts", "everybody who reaches the API server, or every pod of the cluster, has the permission"},
		{"rbac.not-compared", High, "too many permissions to compare", "nobody knows what the roles allow"},
		{"rbac.gained", Medium, "permission gained", "a compromise of the operator reaches further than before"},
		{"rbac.lost", Info, "permission removed", "the operator can do less; features that depend on it stop"},
		{"rbac.account-renamed", Info, "ServiceAccount renamed", "bindings outside of the rendered manifests still reference the old account"},
	}
}

// rateFunc returns the severity of a grant of a subject, or Off if the grant is ordinary. depth limits the
// chain of subjects that can act as each other (see maxDepth).
type rateFunc func(r *rater, rule string, of k8s.Subject, g k8s.Grant, depth int) Severity

// fixedSeverity returns a rateFunc that always returns s, even for a single namespace or object.
func fixedSeverity(s Severity) rateFunc {
	return func(*rater, string, k8s.Subject, k8s.Grant, int) Severity { return s }
}

// limitedSeverity returns a rateFunc. For a grant on all objects, it returns the severity in all; for a single
// cluster-scoped object, the severity in one; and for a namespace, at most Medium.
func limitedSeverity(all, one Severity) rateFunc {
	return func(_ *rater, _ string, _ k8s.Subject, g k8s.Grant, _ int) Severity {
		switch {
		case g.Namespace != "":
			return min(Medium, all)
		case g.Name != "":
			return one
		}
		return all
	}
}

// signerSeverity rates permissions on certificate signers. It returns High for all signers and for
// the signers of Kubernetes, which sign client certificates, and otherwise Medium.
func signerSeverity(_ *rater, _ string, _ k8s.Subject, g k8s.Grant, _ int) Severity {
	if g.Namespace == "" && (g.Name == "" || strings.HasPrefix(g.Name, "kubernetes.io/")) {
		return High
	}
	return Medium
}

// constraintSeverity rates the permission to use SecurityContextConstraints. It returns High for the
// permission to use all of them, and for SecurityContextConstraints that give access to the node. Otherwise
// it returns Off.
func constraintSeverity(_ *rater, _ string, _ k8s.Subject, g k8s.Grant, _ int) Severity {
	if slices.Contains([]string{"", "privileged", "hostaccess", "hostmount-anyuid", "hostnetwork", "hostnetwork-v2", "node-exporter"}, g.Name) {
		return High
	}
	return Off
}

// bindSeverity rates the verb bind. It returns Critical for the permission to bind all roles. For a single
// role, it returns the severity of the permissions of the role, or High if the role is unknown.
func bindSeverity(r *rater, _ string, _ k8s.Subject, g k8s.Grant, depth int) Severity {
	if g.Name == "" {
		return Critical
	}
	who := k8s.Subject{Kind: "Role", Namespace: g.Namespace, Name: g.Name}
	if g.Resource == "clusterroles" {
		who.Kind = "ClusterRole"
	}
	return r.strength(who, depth)
}

// userSeverity rates the permission to impersonate users and groups.
func userSeverity(r *rater, _ string, of k8s.Subject, g k8s.Grant, depth int) Severity {
	if g.Name == "" {
		return Critical
	}
	who := k8s.Subject{Kind: "Group", Name: g.Name}
	if g.Resource == "users" {
		who.Kind = "User"
	}
	if account, ok := strings.CutPrefix(g.Name, "system:serviceaccount:"); ok && who.Kind == "User" {
		who.Kind = "ServiceAccount"
		who.Namespace, who.Name, _ = strings.Cut(account, ":")
	}
	return r.actAsSeverity(of, who, depth)
}

// accountSeverity rates the permission to impersonate ServiceAccounts or to create tokens for them. It
// returns Critical for all ServiceAccounts of the cluster, because these include the ServiceAccounts of the
// controllers.
func accountSeverity(r *rater, _ string, of k8s.Subject, g k8s.Grant, depth int) Severity {
	if g.Name == "" && g.Namespace == "" {
		return Critical
	}
	return r.actAsSeverity(of, k8s.Subject{Kind: "ServiceAccount", Namespace: g.Namespace, Name: g.Name}, depth)
}

// clusterWideSeverity rates a permission that is ordinary in a single namespace.
func clusterWideSeverity(r *rater, rule string, of k8s.Subject, g k8s.Grant, _ int) Severity {
	if g.Namespace != "" && !r.isSystemNamespace(of, g.Namespace) {
		return Off
	}
	return r.ruleSeverity(rule, of, g)
}

// accountsSeverity rates a permission to act as the accounts of a namespace: to run pods or commands in it, or
// to read its Secrets. In a single namespace, it returns the severity of the permissions that the accounts of
// the namespace have and the subject lacks. A restriction to one named workload is ignored, because the pod
// template of the workload can be changed to use another account. This is not possible for a Pod or Job.
func accountsSeverity(r *rater, rule string, of k8s.Subject, g k8s.Grant, depth int) Severity {
	if rule == "rbac.workload-write" && g.Resource != "pods" && g.Resource != "jobs" {
		g.Name = ""
	}
	s := r.ruleSeverity(rule, of, g)
	if g.Namespace == "" || r.isSystemNamespace(of, g.Namespace) {
		return s
	}
	if rule == "rbac.workload-write" {
		s = Off // running pods is ordinary, unless they can use a stronger account
	}
	if g.Name == "" {
		s = max(s, r.reach(of, g.Namespace, depth))
	}
	return s
}

// rater rates grants. A grant that allows acting as another account is rated by the permissions of
// that account.
type rater struct {
	all      *k8s.Permissions
	dangers  []danger
	byGroup  map[string][]danger // dangers that a grant on a group may include
	rules    map[string]RuleInfo
	accounts map[k8s.Subject][]k8s.Subject // ServiceAccounts that a subject stands for, by name or by namespace
	grants   map[k8s.Subject][]k8s.Grant   // all permissions of a subject
	memo     map[ratingKey]Severity

	isSystem  func(namespace string) bool // reports whether a namespace configures the cluster
	followed  []string                    // namespaces between the first and the current subject
	following int                         // number of accounts that were followed
}

// ratingKey is the key of a cached rating of a subject.
type ratingKey struct {
	subject k8s.Subject
	depth   int
}

// maxDepth is the maximum length of a chain of subjects in which each subject can act as the next. At the end
// of the chain, the severity is High.
const maxDepth = 4

func (c *comparison) newRater(all *k8s.Permissions) *rater {
	r := &rater{
		all: all, dangers: dangers(c.resourceOf), byGroup: map[string][]danger{}, rules: c.rules, isSystem: c.isSystemNamespace,
		accounts: map[k8s.Subject][]k8s.Subject{}, grants: map[k8s.Subject][]k8s.Grant{}, memo: map[ratingKey]Severity{},
	}
	for _, s := range all.Subjects() {
		if s.Kind == "ServiceAccount" {
			for _, key := range []k8s.Subject{{Kind: s.Kind, Name: s.Name}, {Kind: s.Kind, Namespace: s.Namespace}} {
				r.accounts[key] = append(r.accounts[key], s)
			}
		}
	}
	return r
}

// rating contains the rule and the severity of the worst danger in a grant. If the grant has no danger, the
// rule is "rbac.gained".
type rating struct {
	rule     string
	severity Severity
	effect   string // see power
}

// rate rates a grant of a subject.
func (r *rater) rate(of k8s.Subject, g k8s.Grant, depth int) rating {
	worst := rating{rule: "rbac.gained", severity: Medium}
	_, sub, _ := strings.Cut(g.Resource, "/")
	if reads := slices.Contains([]string{"get", "list", "watch"}, g.Verb); g.Namespace != "" || reads && slices.Contains([]string{"", "status", "scale"}, sub) {
		worst.severity = Low // getting any other subresource is a request, such as to read logs
	}
	switch {
	case g.Role != "":
		return rating{rule: "rbac.unknown-role", severity: High}
	case g.URL != "":
		if !slices.Contains([]string{"/metrics", "/healthz", "/livez", "/readyz", "/version"}, g.URL) {
			worst = rating{rule: "rbac.urls", severity: Medium}
		}
		return worst
	case g.Covers(k8s.Grant{Verb: "*", Group: "*", Resource: "*"}):
		return rating{rule: "rbac.cluster-admin", severity: Critical}
	case g.Resource == "*" || g.Group == "*":
		worst = rating{rule: "rbac.wildcard", severity: r.ruleSeverity("rbac.wildcard", of, g)}
	}
	listed := false
	for _, d := range r.dangersOf(g.Group) {
		target, ok := d.target(g)
		if !ok || d.isKind && listed {
			continue
		}
		listed = listed || d.isKind && (d.resource == g.Resource || d.resource == "" && target.Resource == g.Resource)
		if !d.isGrantedBy(g, target) {
			continue
		}
		if s := r.dangerSeverity(d, of, target, depth); s > worst.severity || s != Off && worst.rule == "rbac.gained" {
			worst = rating{d.rule, s, d.effect}
		}
	}
	return worst
}

// dangersOf returns the dangers that a grant on an API group may include, in the order of the table.
func (r *rater) dangersOf(group string) []danger {
	out, known := r.byGroup[group]
	if !known {
		for _, d := range r.dangers {
			if group == "*" || group == d.group || d.subgroups && inGroup(group, d.group) {
				out = append(out, d)
			}
		}
		r.byGroup[group] = out
	}
	return out
}

func (r *rater) dangerSeverity(d danger, of k8s.Subject, g k8s.Grant, depth int) Severity {
	switch {
	case d.rule == "":
		return Off
	case d.rate == nil:
		return r.ruleSeverity(d.rule, of, g)
	}
	return d.rate(r, d.rule, of, g, depth)
}

// ruleSeverity returns the default severity of a rule, but at most medium if the grant is limited
// to an object, or to a namespace that does not configure the cluster.
func (r *rater) ruleSeverity(rule string, of k8s.Subject, g k8s.Grant) Severity {
	if g.Namespace != "" && !r.isSystemNamespace(of, g.Namespace) || g.Name != "" {
		return min(Medium, r.rules[rule].Severity)
	}
	return r.rules[rule].Severity
}

// isSystemNamespace reports whether a permission in a namespace is as strong as a permission in the whole cluster. It
// returns false for the subject's own namespace, whose accounts are known, unless Kubernetes creates this namespace.
func (r *rater) isSystemNamespace(of k8s.Subject, namespace string) bool {
	return r.isSystem(namespace) && (of.Namespace != namespace || k8s.IsDefaultNamespace(namespace))
}

// maxFollowing is the maximum number of accounts that reach follows. Above it, the severity is High.
const maxFollowing = 20_000

// reach returns the severity of the permissions that the accounts of a namespace have and a subject lacks. It
// is at most High, and Off if all of them are ordinary.
func (r *rater) reach(of k8s.Subject, namespace string, depth int) Severity {
	if slices.Contains(r.followed, namespace) {
		return Off // the accounts of the namespace are already being rated
	}
	r.followed = append(r.followed, namespace)
	defer func() { r.followed = r.followed[:len(r.followed)-1] }()
	worst := Low
	for _, account := range r.accounts[k8s.Subject{Kind: "ServiceAccount", Namespace: namespace}] {
		if r.following++; depth == 0 || r.following > maxFollowing {
			return High
		}
		for _, g := range k8s.GainedGrants(r.grantsOf(of), r.grantsOf(account)) {
			worst = max(worst, r.rate(account, g, depth-1).severity)
		}
	}
	if worst < Medium {
		return Off
	}
	return min(High, worst)
}

// grantsOf returns all permissions of a subject.
func (r *rater) grantsOf(s k8s.Subject) []k8s.Grant {
	out, known := r.grants[s]
	if !known {
		if out = r.all.Of(s); isRole(s) {
			out = r.all.Direct(s)
		}
		r.grants[s] = out
	}
	return out
}

// actAsSeverity rates the permission of a subject to act as target. If target can only be the subject itself,
// it returns Medium. Otherwise it returns the severity of the permissions of target, but at least High, because
// target may have permissions that are not rendered. A target without a namespace can only be the subject if no
// other ServiceAccount has this name and the name is not "default": every namespace has an account with this
// name.
func (r *rater) actAsSeverity(subject, target k8s.Subject, depth int) Severity {
	same := r.accounts[k8s.Subject{Kind: target.Kind, Name: target.Name}]
	if target == subject || slices.Equal(same, []k8s.Subject{subject}) && target.Name != "" && target.Name != "default" {
		return Medium
	}
	return max(High, r.strength(target, depth))
}

// strength returns the highest severity of the grants of a subject, but at least Medium. The subject may be a
// Role or a ClusterRole. A subject without a namespace stands for all ServiceAccounts with its name. A subject
// without a name stands for all ServiceAccounts in its namespace.
func (r *rater) strength(subject k8s.Subject, depth int) Severity {
	if depth == 0 {
		return High
	}
	if s, ok := r.memo[ratingKey{subject, depth}]; ok {
		return s
	}
	worst := Medium
	add := func(of k8s.Subject, grants []k8s.Grant) {
		for _, g := range grants {
			worst = max(worst, r.rate(of, g, depth-1).severity)
		}
	}
	switch {
	case subject.Kind == "Role" || subject.Kind == "ClusterRole":
		grants, known := r.all.RoleGrants(subject.Kind, subject.Namespace, subject.Name)
		if add(k8s.Subject{}, grants); !known {
			worst = High
		}
	case subject.Kind == "ServiceAccount" && (subject.Namespace == "" || subject.Name == ""):
		for _, s := range r.accounts[subject] {
			add(s, r.all.Of(s))
		}
	default:
		add(subject, r.all.Of(subject))
	}
	r.memo[ratingKey{subject, depth}] = worst
	return worst
}
