package scan

// trivyResult reads an element of Results: the packages of an operating system, of
// a language or of one file, with what was found in them. The form is that of
// Trivy's package pkg/types (Report, Result, DetectedVulnerability).
func (r *reader) trivyResult(out *report) error {
	return r.object(func(key string) error {
		if key != "Vulnerabilities" {
			return r.dec.SkipValue()
		}
		return r.list(func() error { return r.trivyVulnerability(out) })
	})
}

func (r *reader) trivyVulnerability(out *report) error {
	var v Vulnerability
	from := r.next()
	err := r.object(func(key string) error {
		switch key {
		case "VulnerabilityID":
			from = r.next()
			return r.text(&v.ID)
		case "PkgName":
			return r.text(&v.Package)
		case "InstalledVersion":
			return r.text(&v.Installed)
		case "FixedVersion":
			return r.text(&v.Fixed)
		case "Severity":
			return r.severity(&v.Severity)
		case "Title":
			return r.title(&v.Title)
		case "PrimaryURL":
			return r.link(&v.Link)
		default:
			return r.dec.SkipValue()
		}
	})
	if err != nil {
		return err
	}
	return r.add(out, from, v)
}
