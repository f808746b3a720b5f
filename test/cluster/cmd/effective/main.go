//go:build ignore

// Command effective evaluates quayside's own model of RBAC. It reads a JSON list of Kubernetes objects, and
// prints a JSON list of questions with the model's answers. For each ServiceAccount in the arguments
// (namespace/name), it asks for each permission that any of these ServiceAccounts has.
//
// Without arguments, it reads a JSON list of object sets, each with questions. It assumes that each set is in a
// new cluster, and prints the lists of answers.
//
// Tests build this command in the main module, by its file name, because it uses internal packages.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

type answer struct {
	Account string // "my-etcd/etcd-operator"
	Grant   k8s.Grant
	Allowed bool
}

func main() {
	if err := run(os.Stdin, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// questions holds questions about the permissions that a set of objects grants in a new cluster.
type questions struct {
	Objects   []map[string]any
	Questions []answer
}

// answerAll answers the questions about each set.
func answerAll(in io.Reader, out io.Writer) error {
	var sets []questions
	if err := json.NewDecoder(in).Decode(&sets); err != nil {
		return err
	}
	_, defaults := k8s.DefaultRBAC()
	answers := make([][]answer, len(sets))
	for i, set := range sets {
		model, err := k8s.NewPermissions(slices.Concat(defaults, set.Objects))
		if err != nil {
			return err
		}
		may := map[string]k8s.GrantSet{}
		for _, q := range set.Questions {
			if may[q.Account] == nil {
				may[q.Account] = k8s.NewGrantSet(model.Of(accountOf(q.Account)))
			}
			q.Allowed = may[q.Account].Covers(q.Grant)
			answers[i] = append(answers[i], q)
		}
	}
	return json.NewEncoder(out).Encode(answers)
}

func accountOf(text string) k8s.Subject {
	namespace, name, _ := strings.Cut(text, "/")
	return k8s.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
}

func run(in io.Reader, out io.Writer, accounts []string) error {
	if len(accounts) == 0 {
		return answerAll(in, out)
	}
	var objects []map[string]any
	if err := json.NewDecoder(in).Decode(&objects); err != nil {
		return err
	}
	model, err := k8s.NewPermissions(objects)
	if err != nil {
		return err
	}
	may := map[string][]k8s.Grant{}
	var questions []k8s.Grant
	for _, account := range accounts {
		may[account] = model.Of(accountOf(account))
		questions = append(questions, may[account]...)
	}
	slices.SortFunc(questions, k8s.Grant.Compare)
	questions = slices.Compact(questions)
	var answers []answer
	for _, account := range accounts {
		set := k8s.NewGrantSet(may[account])
		for _, q := range questions {
			answers = append(answers, answer{Account: account, Grant: q, Allowed: set.Covers(q)})
		}
	}
	return json.NewEncoder(out).Encode(answers)
}
