package certificates

import (
	"cmp"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
)

// Secret leaves the certificates to the user, who names the Secrets and the CA.
const Secret Name = "secret"

type secret struct{ settings Settings }

func (s secret) Check() error {
	if len(s.settings.CABundle) == 0 && s.settings.CASecret == "" {
		return errors.New("certificates by secret need the CA that signed them: spec.certificateSecret.caFile or .caSecret in quayside.yaml")
	}
	return nil
}

func (s secret) Secret(service string) string {
	return strings.Replace(cmp.Or(s.settings.Secret, "%s-cert"), "%s", service, 1)
}

func (secret) Serve(service kobj.Object) kobj.Object { return service }
func (secret) Issue(_, _ string) []kobj.Object       { return nil }
func (secret) Injects() []string                     { return []string{injectFromSecret} }

func (s secret) Trust(o kobj.Object, _, _ string) kobj.Object {
	if len(s.settings.CABundle) == 0 {
		return annotated(o, injectFromSecret, s.settings.CASecret)
	}
	text := base64.StdEncoding.EncodeToString(s.settings.CABundle)
	switch o.Kind() {
	case "APIService":
		return kobj.With(o, text, "spec", "caBundle")
	case "CustomResourceDefinition":
		return kobj.With(o, text, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	}
	var hooks []any
	for _, h := range kobj.Items(o, "webhooks") {
		hooks = append(hooks, kobj.With(h, text, "clientConfig", "caBundle"))
	}
	return kobj.With(o, hooks, "webhooks")
}
