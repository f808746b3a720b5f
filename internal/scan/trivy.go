package scan

// readTrivyResult reads an item of Results, which has the vulnerable packages of an operating
// system, a language or a file. Trivy's package pkg/types defines the format (Report, Result,
// DetectedVulnerability).
func (r *reader) readTrivyResult(out *imageScan) error {
	return r.readObject(func(key string) error {
		if key != "Vulnerabilities" {
			return r.dec.SkipValue()
		}
		return r.readList(func() error { return r.readTrivyVulnerability(out) })
	})
}

// readTrivyVulnerability reads an item of Vulnerabilities and adds it to out.
func (r *reader) readTrivyVulnerability(out *imageScan) error {
	var v Vulnerability
	from := r.nextOffset()
	err := r.readObject(func(key string) error {
		switch key {
		case "VulnerabilityID":
			from = r.nextOffset()
			return r.readText(&v.ID)
		case "PkgName":
			return r.readText(&v.Package)
		case "InstalledVersion":
			return r.readText(&v.Installed)
		case "FixedVersion":
			return r.readText(&v.Fixed)
		case "Severity":
			return r.readSeverity(&v.Severity)
		case "Title":
			return r.readTitle(&v.Title)
		case "PrimaryURL":
			return r.readLink(&v.Link)
		default:
			return r.dec.SkipValue()
		}
	})
	if err != nil {
		return err
	}
	return r.addVulnerability(out, from, v)
}
