package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/quayside/quayside/test/cluster/harness"
)

// grant mirrors a permission in the output of cmd/effective.
type grant struct{ Namespace, Verb, Group, Resource, Name, URL, Role string }

// answer is the answer of quayside's RBAC model to the question whether a ServiceAccount has a permission.
type answer struct {
	Account string
	Grant   grant
	Allowed bool
}

// maxQuestions limits the number of requests to the API server for one operator. The requests are evenly
// distributed over the model's answers.
const maxQuestions = 500

// checkRights checks that quayside's RBAC model agrees with the API server for every ServiceAccount among the
// objects, and for a ServiceAccount with only the default permissions.
func checkRights(ctx context.Context, t *testing.T, cluster *harness.Cluster, effective string, objects []*unstructured.Unstructured) {
	t.Helper()
	accounts := []string{"default/nobody"}
	for _, o := range objects {
		if o.GetKind() == "ServiceAccount" {
			accounts = append(accounts, o.GetNamespace()+"/"+o.GetName())
		}
	}
	asking := client(t, cluster).AuthorizationV1().SubjectAccessReviews()
	answers := modelAnswers(ctx, t, cluster, effective, accounts)
	step := max(1, len(answers)/maxQuestions)
	for i := 0; i < len(answers); i += step {
		if answers[i].Grant.Role != "" {
			continue // the permissions of a missing role are unknown
		}
		if got := review(ctx, t, asking, answers[i]); got != answers[i].Allowed {
			t.Errorf("%s %+v: API server %v, model %v", answers[i].Account, answers[i].Grant, got, answers[i].Allowed)
		}
	}
}

// modelAnswers returns the answers of quayside's RBAC model for all roles and bindings of the cluster.
func modelAnswers(ctx context.Context, t *testing.T, cluster *harness.Cluster, effective string, accounts []string) []answer {
	t.Helper()
	live, err := applier(t, cluster).ListGroup(ctx, "rbac.authorization.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, effective, accounts...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("asking the model: %v\n%s", err, log.String())
	}
	var answers []answer
	if err := json.Unmarshal(out.Bytes(), &answers); err != nil {
		t.Fatal(err)
	}
	if len(answers) == 0 {
		t.Error("the model grants no permission")
	}
	return answers
}

// review returns the API server's answer to a question. If the answer differs from the model's, it retries for
// a moment, because the authorizer reads roles from a watch.
func review(ctx context.Context, t *testing.T, asking authorization.SubjectAccessReviewInterface, a answer) bool {
	t.Helper()
	for attempt := 0; ; attempt++ {
		r, err := asking.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: a.question()}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status.Allowed == a.Allowed || attempt == 10 {
			return r.Status.Allowed
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// question returns the question for the API server.
func (a answer) question() authorizationv1.SubjectAccessReviewSpec {
	namespace, name, _ := strings.Cut(a.Account, "/")
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:   fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	if a.Grant.URL != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.Grant.URL, Verb: a.Grant.Verb}
	} else {
		resource, sub, _ := strings.Cut(a.Grant.Resource, "/")
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: a.Grant.Namespace, Verb: a.Grant.Verb, Group: a.Grant.Group, Resource: resource, Subresource: sub, Name: a.Grant.Name,
		}
	}
	return spec
}
