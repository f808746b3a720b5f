package compare_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/settings"
)

// TestEverySettingIsJudged lists for each setting the rule that reports a less strict value, or the reason why
// there is no rule: changes are visible in the lock or in the tree, or cannot make any check less strict.
func TestEverySettingIsJudged(t *testing.T) {
	const inLock, inTree = "changes the lock", "changes the tree"
	judged := map[string]string{
		"extends": "settings.extends", "declarations": inLock, "newDeclarations": "only for new declarations",
		"catalogs": "settings.catalogs", "globalCatalogNamespaces": "settings.catalogs",
		"kubernetesVersion": "settings.requirements", "openshiftVersion": "settings.requirements", "requirements": "settings.requirements", "sharedDependencies": "settings.requirements", "allowOverlap": "settings.requirements",
		"allowNames": "settings.names", "output": "settings.output", "profile": inTree, "certificates": inTree, "cert-manager": inTree,
		"provides": "names what clusters have; verify still checks the tree", "proxy": inTree, "mirrors": "settings.catalogs",
		"trust": "settings.trust", "imagePullSecrets": inTree, "csvAnnotations": inTree, "aggregatedRoles": inTree, "healthChecks": inTree, "podLabels": inTree, "owners": "names the rows of resources",
		"gitops": inTree, "storageMigration": inTree, "clusters": inTree, "reporter": inTree, "recreate": inTree,
		"policy": "settings.policy", "follows": "settings.promotion", "promotion": "settings.promotion", "propose": "settings.automerge", "windows": "settings.promotion", "freeze": "settings.promotion",
	}
	for f := range reflect.TypeFor[settings.Workspace]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || f.Anonymous {
			continue
		}
		if judged[name] == "" {
			t.Errorf("spec.%s: neither a rule about its loosening nor a reason for none", name)
		}
	}
}
