package certificates

import (
	"github.com/quayside/quayside/internal/k8s"
)

// vault has a VaultCertificate made for each Service.
type vault struct {
	base
	VaultSettings
}

// VaultSettings are the fields of spec.certificateVault.
type VaultSettings struct {
	Role string `json:"role" doc:"Role that signs. Needed by spec.certificates: vault."`
}

func (vault) InjectAnnotations() []string { return []string{"vault.example.com/inject-ca"} }

func (v vault) Issue(namespace, service string) []k8s.Object {
	o := k8s.New("vault.example.com/v1", "VaultCertificate", namespace, certificateName(service))
	o["spec"] = map[string]any{"role": v.Role, "secretName": certificateName(service)}
	return []k8s.Object{o}
}

func (vault) Issues(group, _ string) bool { return group == "vault.example.com" }

func (v vault) Trust(o k8s.Object, namespace, service string) k8s.Object {
	return withAnnotation(o, "vault.example.com/inject-ca", namespace+"/"+certificateName(service))
}

func (v vault) Faults(chosen bool) []Fault {
	switch {
	case chosen && v.Role == "":
		return []Fault{{"certificateVault.role", "missing: the vault signs for a role"}}
	case !chosen && v.Role != "":
		return []Fault{{"certificateVault", "needs spec.certificates: vault"}}
	}
	return nil
}
