package trust

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/imageref"
)

// openPGPKeys are the OpenPGP keys in one file.
type openPGPKeys struct {
	name string // of the file, for errors
	keys openpgp.EntityList
}

func isOpenPGP(k Key) bool { return bytes.Contains(k.PEM, []byte("BEGIN PGP PUBLIC KEY BLOCK")) }

func parseOpenPGP(k Key) (openPGPKeys, error) {
	keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(k.PEM))
	if err != nil {
		return openPGPKeys{}, fmt.Errorf("key %s: %w", k.Name, err)
	}
	return openPGPKeys{k.Name, keys}, nil
}

// openPGP returns the checker of a rule with OpenPGP keys, or nil.
func (r rule) openPGP() *keyChecker {
	if keys, is := r.check.(*keyChecker); is && len(keys.openPGP) > 0 {
		return keys
	}
	return nil
}

// checkProvenance verifies the provenance file of the chart whose archive has this digest. If version is not empty,
// the file must be about this name and version. checkProvenance returns the key, as "key openpgp:" and its fingerprint. The format is that of helm.sh/docs/topics/provenance: a text with a cleartext
// signature. The text is Chart.yaml and, after a line with "...", the digests of the files.
func (c *keyChecker) checkProvenance(archive, name, version string, file []byte) (signer string, err error) {
	block, _ := clearsign.Decode(file)
	if block == nil {
		return "", errors.New("the provenance file has no OpenPGP signature")
	}
	signature := new(bytes.Buffer)
	if _, err := signature.ReadFrom(block.ArmoredSignature.Body); err != nil {
		return "", fmt.Errorf("the provenance file has an invalid OpenPGP signature: %w", err)
	}
	var by *openpgp.Entity
	for _, ring := range c.openPGP {
		if by, err = openpgp.CheckDetachedSignature(ring.keys, bytes.NewReader(block.Bytes), bytes.NewReader(signature.Bytes()), nil); err == nil {
			break
		}
	}
	if err != nil { // an expired or revoked key sets both by and err
		return "", errors.Join(errors.New("the provenance file was not signed with this key, or was altered"), err)
	}
	about, text, _ := bytes.Cut(block.Plaintext, []byte("\n...\n"))
	var sums struct {
		Files map[string]string `json:"files"`
	}
	var meta struct{ Name, Version string }
	if err := errors.Join(yaml.Unmarshal(text, &sums), yaml.Unmarshal(about, &meta)); err != nil {
		return "", fmt.Errorf("the provenance file: %w", err)
	}
	if version != "" && (meta.Name != name || meta.Version != version) {
		return "", fmt.Errorf("the provenance file is about chart %s %s", meta.Name, meta.Version)
	}
	if !slices.Contains(slices.Collect(maps.Values(sums.Files)), archive) {
		return "", fmt.Errorf("the provenance file is about another archive than %s", archive)
	}
	return "key openpgp:" + hex.EncodeToString(by.PrimaryKey.Fingerprint), nil
}

// VerifyArchive verifies the archive of a version of a chart, with this digest, from a web server. chart is "host/path/name":
// the URL of the repository without its scheme, then the name of the chart. A signature is required if the
// first rule that matches chart has OpenPGP keys. provenance returns the provenance file. If the archive does not
// have the required signature, the error wraps a *ProvenanceError.
func (p *Policy) VerifyArchive(chart, version, digest string, provenance func() ([]byte, error)) error {
	if p == nil {
		return nil
	}
	if name, err := imageref.Normal(chart); err == nil {
		chart = name.Name()
	}
	r, ok := p.firstRule(chart)
	keys := r.openPGP()
	if !ok || keys == nil {
		return nil
	}
	file, err := provenance()
	if err == nil {
		_, err = keys.checkProvenance(digest, path.Base(chart), version, file)
	}
	if err != nil {
		return fmt.Errorf("chart %s: %s requires a provenance file signed by %s: %w", chart, r.Where, keys.signerName(), &ProvenanceError{err})
	}
	return nil
}

// ProvenanceError is the error for an archive of a chart without the required signature.
type ProvenanceError struct{ error }

// Unwrap returns the cause.
func (e *ProvenanceError) Unwrap() error { return e.error }
