package render

import "encoding/base64"

// withCA sets the CA's certificates wherever o trusts a Service.
func withCA(o Object, pem []byte) Object {
	text := base64.StdEncoding.EncodeToString(pem)
	switch o.Kind() {
	case "APIService":
		return with(o, text, "spec", "caBundle")
	case "CustomResourceDefinition":
		return with(o, text, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	}
	var hooks []any
	for _, h := range items(o, "webhooks") {
		hooks = append(hooks, with(h, text, "clientConfig", "caBundle"))
	}
	return with(o, hooks, "webhooks")
}
