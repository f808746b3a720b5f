package admit

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	webhookSeconds = int32(10)
	webhookPort    = int32(443)
)

func validatingDefaults(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		webhookDefaults(&w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.TimeoutSeconds, &w.NamespaceSelector, &w.ObjectSelector)
	}
}

func mutatingDefaults(o *admissionregistrationv1.MutatingWebhookConfiguration) {
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		webhookDefaults(&w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.TimeoutSeconds, &w.NamespaceSelector, &w.ObjectSelector)
		setPointerDefault(&w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
	}
}

// webhookDefaults sets the defaults that validating and mutating webhooks share.
func webhookDefaults(client *admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations,
	failure **admissionregistrationv1.FailurePolicyType, match **admissionregistrationv1.MatchPolicyType, seconds **int32, selectors ...**metav1.LabelSelector,
) {
	setPointerDefault(failure, admissionregistrationv1.Fail)
	setPointerDefault(match, admissionregistrationv1.Equivalent)
	setPointerDefault(seconds, webhookSeconds)
	for _, s := range selectors {
		setPointerDefault(s, metav1.LabelSelector{})
	}
	if client.Service != nil {
		setPointerDefault(&client.Service.Port, webhookPort)
	}
	for i := range rules {
		setPointerDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}
