package declare

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/diag"
)

// fieldFault is an invalid or missing value of a checked field.
type fieldFault struct {
	text string // a declaration with ‸ before the expected position
	says string
}

func fieldFaults() []fieldFault {
	const (
		sub      = "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\n"
		source   = "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: c, namespace: olm}\n"
		group    = "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: og, namespace: ns}\n"
		csv      = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n"
		ext      = "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\n"
		cat      = "apiVersion: olm.operatorframework.io/v1\nkind: ClusterCatalog\nmetadata: {name: c}\n"
		own      = "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\n"
		policy   = "apiVersion: policy.open-cluster-management.io/v1beta1\nkind: OperatorPolicy\n"
		must     = "complianceType: musthave, upgradeApproval: None, subscription: "
		inNS     = "{name: p, namespace: ns}"
		meta     = "metadata: {name: a, namespace: ns}\n"
		named    = "metadata: {name: a}\n"
		hub      = "name: a, source: hub, sourceNamespace: olm"
		of       = "namespace: ns, source: {sourceType: Catalog, catalog: {packageName: p}}"
		name     = "is not a Kubernetes name"
		space    = "is not a valid namespace name"
		not      = "must be one of"
		versions = "is not a version range"
		missing  = "missing"
	)
	return []fieldFault{
		{sub + "metadata: {name: ‸A, namespace: ns}\nspec: {" + hub + "}\n", name},
		{sub + "metadata: ‸{namespace: ns}\nspec: {" + hub + "}\n", missing},
		{sub + "metadata: {name: a, namespace: ‸A}\nspec: {" + hub + "}\n", space},
		{sub + meta + "spec: {name: ‸A, source: hub, sourceNamespace: olm}\n", name},
		{sub + meta + "spec: ‸{source: hub, sourceNamespace: olm}\n", missing},
		{sub + meta + "spec: {name: a, source: ‸Hub, sourceNamespace: olm}\n", name},
		{sub + meta + "spec: {name: a, source: hub, sourceNamespace: ‸Olm}\n", space},
		{sub + meta + "spec: {" + hub + ", installPlanApproval: ‸manual}\n", not},
		{sub + meta + "spec: {" + hub + ", config: {resources: {limits: {cpu: ‸.inf}}}}\n", "cannot be represented in JSON"},
		{own + meta + "spec: {package: p, config: {volumes: [{x: ‸.inf}]}}\n", "cannot be represented in JSON"},
		{sub + meta + "spec: {" + hub + ", config: {env: [‸{value: x}]}}\n", missing},
		{sub + meta + "spec: {" + hub + ", config: {selector: {matchExpressions: [{key: a, operator: ‸Is}]}}}\n", not},
		{sub + meta + "spec: {" + hub + ", config: {volumes: [{name: v, configmap: ‸{name: c}}]}}\n", "unknown field \"configmap\" in spec.config.volumes[0]"},
		{own + meta + "spec: {package: p, config: {volumes: [{name: v, emptyDir: {}}, {name: ‸v, emptyDir: {}}]}}\n", "duplicate volume"},
		{own + meta + "spec: {package: p, config: {affinity: {nodeAffinity: ‸[]}}}\n", "expected an object, got a list"},
		{source + "spec: {sourceType: ‸GRPC}\n", not},
		{source + "spec: {sourceType: grpc, grpcPodConfig: {affinity: {nodeaffinity: ‸{}}}}\n", "(did you mean \"nodeAffinity\"?)"},
		{group + "spec: {upgradeStrategy: ‸Unsafe}\n", not},
		{group + "spec: {targetNamespaces: [a, ‸B]}\n", space},
		{group + "spec: {selector: {matchExpressions: [{key: k, operator: Exists, values: ‸[x]}]}}\n", "does not allow values"},

		{csv + "metadata: {name: ‸A, namespace: ns}\n", name},
		{csv + "metadata: {name: a, namespace: ‸A}\n", space},

		{ext + "metadata: {name: ‸A}\nspec: {" + of + "}\n", name},
		{ext + named + "spec: {namespace: ‸A, source: {sourceType: Catalog, catalog: {packageName: p}}}\n", space},
		{ext + named + "spec: {namespace: ns, source: {sourceType: ‸catalog}}\n", not},
		{ext + named + "spec: {namespace: ns, source: {sourceType: Catalog, catalog: {packageName: p}, ociImage: ‸{ref: x}}}\n", "only with sourceType OCIImage"},
		{ext + named + "spec: {namespace: ns, source: {sourceType: OCIImage, ociImage: ‸{}}}\n", missing},
		{ext + named + "spec: {namespace: ns, source: ‸{sourceType: Catalog}}\n", missing},
		{ext + named + "spec: {namespace: ns, source: {sourceType: OCIImage, ociImage: {ref: x}, catalog: ‸{packageName: p}}}\n", "only with sourceType Catalog"},
		{ext + named + "spec: {namespace: ns, source: {sourceType: Catalog, catalog: {packageName: ‸P}}}\n", name},
		{ext + named + "spec: {namespace: ns, source: {sourceType: Catalog, catalog: {packageName: p, version: ‸x.y}}}\n", versions},
		{ext + named + "spec: {namespace: ns, source: {sourceType: Catalog, catalog: {packageName: p, upgradeConstraintPolicy: ‸None}}}\n", not},
		{ext + named + "spec: {namespace: ns, source: {sourceType: Catalog, catalog: {packageName: p, channels: [a, ‸B]}}}\n", "is not a valid channel name"},
		{ext + named + "spec: {namespace: ns, source: {sourceType: Catalog, catalog: {packageName: p, selector: {matchExpressions: [‸{operator: Exists}]}}}}\n", missing},
		{ext + named + "spec: {" + of + ", install: {preflight: {crdUpgradeSafety: {enforcement: ‸Lax}}}}\n", not},
		{ext + named + "spec: {namespace: ‸\"\", source: {sourceType: Catalog, catalog: {packageName: p}}}\n", missing},
		{ext + named + "spec: {" + of + ", install: ‸{}}\n", missing},
		{ext + named + "spec: {" + of + ", progressDeadlineMinutes: ‸9}\n", "is not between 10 and 720"},
		{ext + named + "spec: {" + of + ", config: {configType: ‸Ref, inline: {watchNamespace: w}}}\n", not},
		{ext + named + "spec: {" + of + ", config: ‸{configType: Inline}}\n", missing},
		{ext + named + "spec: {" + of + ", config: {configType: Inline, inline: ‸{}}}\n", "empty"},
		{ext + named + "spec: {" + of + ", config: {configType: Inline, inline: {deploymentConfig: {selector: ‸{}}}}}\n", "not supported by OLM v1"},
		{ext + named + "spec: {" + of + ", config: {configType: Inline, inline: {watchNamespace: ‸A}}}\n", space},
		{ext + named + "spec: {" + of + ", config: {configType: Inline, inline: {deploymentConfig: {volumes: [{x: ‸.inf}]}}}}\n", "cannot be represented in JSON"},
		{cat + "spec: {source: {type: ‸Git, image: {ref: x}}}\n", not},
		{cat + "spec: {source: {type: Image, image: {ref: x}}, availabilityMode: ‸Never}\n", not},
		{cat + "spec: {source: {type: Image, image: {ref: x, pollIntervalMinutes: ‸0}}}\n", "is less than 1"},
		{cat + "spec: {source: {type: Image, image: {ref: \"x@sha256:a\", pollIntervalMinutes: ‸5}}}\n", "never changes"},
		{cat + "spec: {source: {type: Image, image: ‸{}}}\n", missing},

		{policy + "metadata: {name: ‸A}\nspec: {" + must + inNS + "}\n", name},
		{policy + named + "spec: {complianceType: ‸mustHave, upgradeApproval: None, subscription: " + inNS + "}\n", not},
		{policy + named + "spec: {complianceType: ‸mustnothave, upgradeApproval: None, subscription: " + inNS + "}\n", "mustnothave declares no operator"},
		{policy + named + "spec: ‸{complianceType: musthave, subscription: " + inNS + "}\n", missing},
		{policy + named + "spec: {complianceType: musthave, upgradeApproval: ‸Manual, subscription: " + inNS + "}\n", not},
		{policy + named + "spec: {severity: ‸urgent, " + must + inNS + "}\n", not},
		{policy + named + "spec: {remediationAction: ‸Enforced, " + must + inNS + "}\n", not},
		{policy + named + "spec: {removalBehavior: {operatorGroups: ‸Delete}, " + must + inNS + "}\n", not},
		{policy + named + "spec: {complianceConfig: {upgradesAvailable: ‸Maybe}, " + must + inNS + "}\n", not},
		{policy + named + "spec: {removalBehavior: {‸operators: Delete}, " + must + inNS + "}\n", "unknown field \"operators\""},
		{policy + named + "spec: {" + must + "‸{namespace: ns}}\n", missing},
		{policy + named + "spec: {" + must + "{name: ‸a.b, namespace: ns}}\n", space},
		{policy + named + "spec: {" + must + "‸{name: p}}\n", "missing: set it"},
		{policy + named + "spec: {" + must + "{name: p, namespace: ‸A}}\n", space},
		{policy + named + "spec: {" + must + "{name: p, namespace: ns, installPlanApproval: ‸Automatic}}\n", "use spec.upgradeApproval"},
		{policy + named + "spec: {" + must + "‸{name: p, namespace: ns, sourceNamespace: olm}}\n", "missing: sourceNamespace is set"},
		{policy + named + "spec: {" + must + "{name: p, namespace: ns, source: ‸Hub, sourceNamespace: olm}}\n", name},
		{policy + named + "spec: {" + must + "‸{name: p, namespace: ns, source: hub}}\n", "missing: source is set"},
		{policy + named + "spec: {" + must + "{name: p, namespace: ns, source: hub, sourceNamespace: ‸Olm}}\n", space},
		{policy + named + "spec: {" + must + "{name: p, namespace: ns, ‸chanel: x}}\n", "unknown field \"chanel\" in spec.subscription"},
		{policy + named + "spec: {" + must + "{name: p, namespace: ns, config: {env: [‸{value: x}]}}}\n", missing},
		{policy + named + "spec: {versions: [p.v1, ‸P V2], " + must + inNS + "}\n", "is not the name of a ClusterServiceVersion"},
		{policy + named + "spec: {operatorGroup: ‸{namespace: ns}, " + must + inNS + "}\n", missing},
		{policy + named + "spec: {operatorGroup: {name: g, namespace: ‸other}, " + must + inNS + "}\n", "is not the namespace of spec.subscription"},
		{policy + named + "spec: {operatorGroup: {name: g, targetNamespaces: [a, ‸B]}, " + must + inNS + "}\n", space},
		{policy + named + "spec: {operatorGroup: {name: g, ‸targetNamespace: a}, " + must + inNS + "}\n", "unknown field \"targetNamespace\" in spec.operatorGroup"},

		{own + "metadata: {name: ‸A, namespace: ns}\nspec: {package: p}\n", name},
		{own + "metadata: {name: a, namespace: ‸A}\nspec: {package: p}\n", space},
		{own + meta + "spec: {package: ‸P}\n", name},
		{own + meta + "spec: {package: p, version: ‸x.y}\n", versions},
		{own + meta + "spec: {package: p, approval: ‸manual}\n", not},
		{own + meta + "spec: {bundle: ‸quay.io/x}\n", "is not image:reference"},
		{own + meta + "spec: {bundle: \"image:x\", channel: ‸c}\n", "conflicts with spec.bundle"},
		{own + meta + "spec: {package: p, catalog: ‸a/b/c}\n", "is not namespace/name"},
		{own + meta + "spec: {package: p, replaces: ‸other}\n", "is not namespace/package"},
		{own + meta + "spec: {package: p, replaces: ‸a/b/c}\n", "is not namespace/package"},
		{own + meta + "spec: {package: p, replaces: ‸ns/p}\n", "cannot replace itself"},
		{own + meta + "spec: {package: p, replaces: ns/o}\n---\n" + own + "metadata: {name: b, namespace: ns}\nspec: {package: q, replaces: ‸ns/o}\n", "can have only one successor: subscription \"ns/a\" at d.yaml:4:30 also replaces it"},
		{own + meta + "spec: {package: p, replaces: ‸ns/o}\n---\n" + own + "metadata: {name: b, namespace: ns}\nspec: {package: o}\n", "is still declared at d.yaml:6:1"},
		{own + meta + "spec: {package: p, watchNamespaces: ‸[]}\n", "empty"},
		{own + meta + "spec: {package: p, watchNamespaces: [a, ‸\"*\"]}\n", space},
	}
}

// marked returns the text without its mark, and the position of the mark.
func marked(t *testing.T, text string) (string, diag.Pos) {
	t.Helper()
	before, after, found := strings.Cut(text, "‸")
	if !found {
		t.Fatalf("no mark in\n%s", text)
	}
	return before + after, diag.Pos{File: "d.yaml", Line: 1 + strings.Count(before, "\n"), Col: len(before) - strings.LastIndex(before, "\n")}
}

func TestFaultPositions(t *testing.T) {
	for _, f := range fieldFaults() {
		text, want := marked(t, f.text)
		_, err := Parse("d.yaml", []byte(text))
		var faults diag.List
		if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Pos != want || !strings.Contains(faults[0].Error(), f.says) {
			t.Errorf("got %v, want %q at %v, in\n%s", err, f.says, want, f.text)
		}
	}
}

// dialects returns a declaration of each dialect with all fields. The value of each Field is
// preceded by ‸.
func dialects() map[Dialect]string {
	return map[Dialect]string{
		V0: "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ‸0‸ns}\n" +
			"spec: {name: ‸1‸a, channel: ‸2‸c, source: ‸4‸hub, sourceNamespace: ‸5‸olm, startingCSV: ‸6‸x, installPlanApproval: ‸7‸Manual, config: ‸11‸{nodeSelector: {a: b}}}\n" +
			"status: {installedCSV: ‸13‸a.v1}\n",
		V1: "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {name: a}\n" +
			"spec:\n  namespace: ‸0‸ns\n  source: {sourceType: Catalog, catalog: {packageName: ‸1‸p, channels: [‸2‸c, d], version: ‸3‸\">=1\", selector: ‸4‸{matchLabels: {a: b}}, upgradeConstraintPolicy: ‸8‸SelfCertified}}\n" +
			"  config: {configType: Inline, inline: {watchNamespace: ‸10‸m, deploymentConfig: ‸11‸{nodeSelector: {a: b}}}}\n" +
			"status: {install: {bundle: {name: ‸13‸a.v1}}}\n",
		OCM: "apiVersion: policy.open-cluster-management.io/v1beta1\nkind: OperatorPolicy\nmetadata: {name: a}\n" +
			"spec:\n  complianceType: musthave\n  versions: ‸3‸[a.v1]\n  upgradeApproval: ‸7‸None\n" +
			"  subscription: {name: ‸1‸a, namespace: ‸0‸ns, channel: ‸2‸c, source: ‸4‸hub, sourceNamespace: ‸5‸olm, startingCSV: ‸6‸x, config: ‸11‸{nodeSelector: {a: b}}}\n",
		Quayside: "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ‸0‸ns}\n" +
			"spec: {package: ‸1‸p, channel: ‸2‸c, version: ‸3‸\">=1\", catalog: ‸4‸‸5‸olm/hub, approval: ‸7‸Manual, hops: ‸8‸any, hold: ‸9‸x, replaces: ‸14‸other/p, watchNamespaces: ‸10‸[m], config: ‸11‸{nodeSelector: {a: b}}}\n",
	}
}

// TestFieldPositionsOfEveryDialect checks the positions of all fields of each dialect. Only
// the field for a bundle is missing in the examples, because they have the field for a package.
func TestFieldPositionsOfEveryDialect(t *testing.T) {
	for _, k := range knownKinds() {
		if k.fields == nil {
			continue
		}
		text, found := dialects()[Dialect(k.group)]
		if !found {
			t.Errorf("%s: no declaration to look at", k.group)
			continue
		}
		parts := strings.Split(text, "‸")
		plain, want := parts[0], map[Field]diag.Pos{}
		for i := 1; i < len(parts); i += 2 {
			field, err := strconv.Atoi(parts[i])
			if err != nil {
				t.Fatal(err)
			}
			want[Field(field)] = diag.Pos{File: "d.yaml", Line: 1 + strings.Count(plain, "\n"), Col: len(plain) - strings.LastIndex(plain, "\n")}
			plain += parts[i+1]
		}
		set, err := Parse("d.yaml", []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		s := set.Subscriptions[0]
		for f := FieldNamespace; f <= FieldReplaces; f++ {
			_, has := k.fields()[f]
			pos, marked := want[f]
			switch {
			case has != marked && f != FieldBundle:
				t.Errorf("%s: field %d: in the table %v, in the declaration %v", k.group, f, has, marked)
			case marked && s.At(f) != pos:
				t.Errorf("%s: position of field %d: got %v, want %v", k.group, f, s.At(f), pos)
			case !has && s.At(f) != s.Pos:
				t.Errorf("%s: position of the missing field %d: %v", k.group, f, s.At(f))
			case marked && s.At(FieldBundle, f) != pos:
				t.Errorf("%s: position of field %d after a missing field: %v", k.group, f, s.At(FieldBundle, f))
			}
		}
	}
}

// TestEveryKindIsRead parses an empty object of each known kind, separately and in a List, and
// checks that unknown versions are rejected.
func TestEveryKindIsRead(t *testing.T) {
	for _, k := range knownKinds() {
		for _, apiVersion := range k.versions {
			object := "apiVersion: " + apiVersion + "\nkind: " + k.kind + "\nmetadata: {name: A_B, namespace: ns}\n"
			for _, text := range []string{object, "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(object), "\n", "\n  ") + "\n"} {
				if _, err := Parse("d.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), `metadata.name: "A_B" is not a`) {
					t.Errorf("%s %s: %v", apiVersion, k.kind, err)
				}
			}
		}
		if k.group == "v1" {
			continue
		}
		_, err := Parse("d.yaml", []byte("apiVersion: "+k.group+"/v9\nkind: "+k.kind+"\n"))
		want := `d.yaml:1:13: unknown apiVersion "` + k.group + `/v9" for ` + k.kind + ": must be " + k.versions[0]
		if k.group == string(Quayside) {
			want = "d.yaml:1:13: written by a newer quayside (schema quayside.dev/v9; this version supports quayside.dev/v1alpha1)"
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", k.kind, err)
		}
	}
}
