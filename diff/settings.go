package diff

// Rules about loosened policy and trust settings. A branch may change these settings without
// changing any object.
const (
	SettingsTrust  = "settings.trust"
	SettingsPolicy = "settings.policy"
	SettingsWaiver = "settings.waiver"
)

func settingRules() []RuleInfo {
	return []RuleInfo{
		{SettingsTrust, High, "signature requirement loosened", "images that the base refuses are accepted"},
		{SettingsPolicy, High, "policy loosened", "findings that the base refuses are accepted"},
		{SettingsWaiver, High, "waiver added or extended", "it applies to all later changes"},
		{"settings.catalogs", High, "source of a catalog or mirror changed", "bundles and images come from another source under a familiar name"},
		{"settings.promotion", High, "promotion requirement loosened", "versions reach this environment that the base would hold back"},
		{"settings.automerge", High, "review of pull requests loosened", "pull requests are merged without a reviewer, unless the forge requires one"},
		{"settings.requirements", High, "requirement of operators loosened", "versions that the platform or other operators exclude may be installed, and objects whose API the platform no longer serves may be applied"},
		{"settings.output", High, "output directory changed", "the GitOps tool may still apply the old directory, which is no longer updated"},
		{"settings.names", High, "reserved object name allowed", "a bundle may then replace an object of the cluster, such as its administrator's role"},
		{"settings.extends", High, "inherited settings changed", "settings are inherited from another file, possibly with other reviewers"},
	}
}

// StateRules returns the rules of 'quayside verify' for which diff reports new violations. The values are the
// rule IDs of the resulting findings.
func StateRules() map[string]string {
	return map[string]string{
		"promotion": "state.promotion", "address": "state.address", "engine-names": "state.names", "one-owner": "state.owner",
		"requirements": "state.requirements", "schema": "state.schema",
	}
}

func stateRules() []RuleInfo {
	return []RuleInfo{
		{"state.promotion", High, "ahead of the followed environment", "the version was not tested there first"},
		{"state.address", High, "another tree is applied", "the clusters get the operators of another environment, or none"},
		{"state.names", High, "names of another environment", "both environments overwrite the same objects of the GitOps tool"},
		{"state.owner", High, "operator of another environment", "two environments install it in the same cluster"},
		{"state.requirements", High, "unsupported version of the platform", "the operator may not run"},
		{"state.schema", High, "invalid object after overlays", "the cluster rejects the object, or stores it without the field"},
	}
}

// addSettings adds the findings in opt.Settings to the report.
func (r *Report) addSettings(opt CompareOptions) {
	r.onlyPolicy = opt.PolicyOnlyChange && r.Empty()
	c := &comparison{opt: opt, rules: rulesByID()}
	for _, f := range opt.Settings {
		if f.Severity == Off {
			f.Severity = Critical
		}
		c.add(f.Rule, nil, f, f.Severity)
	}
	if len(c.found) > 0 {
		r.Findings = append(r.Findings, c.found...)
		r.addMissingOperators(nil)
		if r.onlyPolicy {
			r.Notes = append(r.Notes, "only the policy or spec.trust changes: findings are reported, but not refused")
		}
	}
}
