package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/gobuild"
)

const about = "Resolves, locks and renders Kubernetes operators into Git"

// homebrewFormula returns the Homebrew formula. baseURL is the prefix of the archives' names,
// sums are the checksums by platform.
func homebrewFormula(version, baseURL string, sums map[string]string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "class Quayside < Formula\n  desc %q\n  homepage %q\n  version %q\n  license %q\n", about, gobuild.Homepage, version, gobuild.License)
	for _, system := range []string{"darwin", "linux"} {
		fmt.Fprintf(&b, "\n  on_%s do\n", strings.Replace(system, "darwin", "macos", 1))
		for _, arch := range []string{"amd64", "arm64"} {
			p := system + "/" + arch
			cpu := map[string]string{"amd64": "intel", "arm64": "arm"}[arch]
			fmt.Fprintf(&b, "    on_%s do\n      url %q\n      sha256 %q\n    end\n", cpu, baseURL+archiveName(version, p), sums[p])
		}
		b.WriteString("  end\n")
	}
	b.WriteString(`
  def install
    bin.install "quayside"
    man1.install Dir["man/man1/*.1"]
    generate_completions_from_executable(bin/"quayside", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/quayside version")
  end
end
`)
	return b.Bytes()
}

// krewManifest returns the krew manifest, which installs the program as 'kubectl quayside'. The
// parameters are those of homebrewFormula.
func krewManifest(version, baseURL string, sums map[string]string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: quayside
spec:
  version: v%s
  homepage: %s
  shortDescription: %s
  description: |
    quayside does offline what the Operator Lifecycle Manager does in a cluster: it
    chooses versions of operators from catalogs, writes a lock file, and renders the
    lock into manifests that Argo CD, Flux or kubectl apply.
  platforms:
`, version, gobuild.Homepage, about)
	for _, p := range releasePlatforms() {
		system, arch, _ := strings.Cut(p, "/")
		bin := program
		if system == "windows" {
			bin += ".exe"
		}
		fmt.Fprintf(&b, "  - selector:\n      matchLabels: {os: %s, arch: %s}\n    uri: %s\n    sha256: %s\n    bin: %s\n    files: [{from: %[5]s, to: .}, {from: LICENSE, to: .}]\n",
			system, arch, baseURL+archiveName(version, p), sums[p], bin)
	}
	return b.Bytes()
}
