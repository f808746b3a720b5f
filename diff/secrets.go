package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
)

// compareSecrets reports new uses of Secrets of other operators, and new uses of Secrets that are not in the
// tree.
func compareSecrets(c *comparison) {
	for _, p := range c.changed {
		if p.after == nil {
			continue
		}
		had := map[k8s.Key]bool{}
		if p.before != nil {
			for _, ref := range c.types.SecretRefs(p.before.Content) {
				had[secretKey(p.before, ref)] = true
			}
		}
		for _, ref := range c.types.SecretRefs(p.after.Content) {
			key := secretKey(p.after, ref)
			if had[key] {
				continue
			}
			had[key] = true
			limit := c.secretSeverity(p.after, key)
			if p.after.Key().Is(certificateKind) && !isSecretOfOthers(c, p.after, key) {
				limit = Off // cert-manager writes it
			}
			if slices.Contains(ref.Path, "imagePullSecrets") {
				limit = min(limit, Medium) // only the kubelet reads it
			}
			if limit == Off {
				continue
			}
			path := fieldPathOf(p.after.Content, ref.Path)
			c.add("pods.secret", p.after, Finding{
				Field: secretField(p.after, path), After: key.Name, Message: fmt.Sprintf("%s Secret %s", secretVerb(p.after), key.Name),
				path: path, Container: path.container(), explains: noField(),
			}, limit)
		}
	}
}

// secretKey returns the key of the Secret that ref, in o, refers to.
func secretKey(o *Object, ref admit.SecretRef) k8s.Key {
	key := k8s.Key{Kind: "Secret", Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = o.Key().Namespace
	}
	return key
}

// secretField returns the path of a reference for display: in a pod, only the path of the volume or container.
func secretField(o *Object, path fieldPath) string {
	for _, p := range podsOf(o) {
		if path.isIn(p.at) {
			var parts []string
			for _, s := range path[len(p.at):min(len(path), len(p.at)+2)] {
				parts = append(parts, s.key)
			}
			return strings.Join(parts, ".")
		}
	}
	return path.String()
}

func secretVerb(o *Object) string {
	if len(podsOf(o)) > 0 {
		return "the pod reads"
	}
	return "refers to"
}

// secretSeverity rates the use of a Secret by an object. It returns Off for a Secret of the object's
// operator.
func (c *comparison) secretSeverity(o *Object, secret k8s.Key) Severity {
	for _, v := range []*view{c.before, c.after} {
		if s := v.byKey[secret]; s != nil {
			if c.isOperator(s.Operator, o.Operator) {
				return Off
			}
			return High
		}
	}
	if c.writesSecret(o.Operator, secret) || secret.Namespace == o.Key().Namespace && c.ownsPrefix(o.Operator, secret.Namespace, secret.Name) {
		return Medium
	}
	return High
}

// isSecretOfOthers reports whether a Secret belongs to an operator other than the operator of o. A Secret belongs to
// each operator that renders it, uses it, has a Certificate for it, or owns its name (see prefixOwner).
func isSecretOfOthers(c *comparison, o *Object, secret k8s.Key) bool {
	owners := []string{c.prefixOwner(o.Operator, secret.Namespace, secret.Name), referencesOf(c, secret)}
	for _, v := range []*view{c.before, c.after} {
		if s := v.byKey[secret]; s != nil {
			owners = append(owners, s.Operator)
		}
		for _, other := range v.order {
			if other.Key().Is(certificateKind) && other.Key().Namespace == secret.Namespace && k8s.Text(other.Content, "spec", "secretName") == secret.Name {
				owners = append(owners, other.Operator)
			}
		}
	}
	return slices.ContainsFunc(owners, func(owner string) bool { return owner != "" && !c.isOperator(owner, o.Operator) })
}

// writesSecret reports whether an operator has a Certificate that cert-manager writes to a Secret.
func (c *comparison) writesSecret(operator string, secret k8s.Key) bool {
	return slices.ContainsFunc(c.after.order, func(o *Object) bool {
		return o.Key().Is(certificateKind) && o.Key().Namespace == secret.Namespace && c.isOperator(o.Operator, operator) && k8s.Text(o.Content, "spec", "secretName") == secret.Name
	})
}
