package k8s

// ClientConfigs returns the parts of an object with the fields service and caBundle. The API server uses these
// fields to find and trust an admission webhook, a conversion webhook or an aggregated API.
func ClientConfigs(o Object) []map[string]any {
	switch {
	case o.Group() == "admissionregistration.k8s.io":
		var out []map[string]any
		for _, w := range Items(o, "webhooks") {
			out = append(out, Map(w, "clientConfig"))
		}
		return out
	case IsCRD(o):
		return []map[string]any{Map(o, "spec", "conversion", "webhook", "clientConfig")}
	case o.Is(APIServiceGroup, "APIService"):
		return []map[string]any{Map(o, "spec")}
	}
	return nil
}
