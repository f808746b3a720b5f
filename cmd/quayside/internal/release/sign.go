package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/internal/oci/sign"
	"github.com/quayside/quayside/internal/oci/trust"
)

// bundleName is the name of the file with the signature of the checksums.
const bundleName = sumsName + ".sigstore.json"

// signer returns the signer of a release, or nil without -sign.
func (o options) signer() (*sign.Signer, error) {
	if o.signKey == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.signKey)
	if err != nil {
		return nil, err
	}
	s, err := sign.NewKey(text, o.getenv("COSIGN_PASSWORD"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.signKey, err)
	}
	return s, nil
}

// signFiles adds the signature of the checksums to the files of a release.
func signFiles(ctx context.Context, files map[string][]byte, s *sign.Signer) error {
	if s == nil {
		return nil
	}
	var err error
	files[bundleName], err = s.SignBlob(ctx, files[sumsName])
	return err
}

// checkWithKeyFile checks the release in dir with the public key in a file.
func checkWithKeyFile(dir, keyFile string) error {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	return verifyRelease(dir, trust.Key{Name: keyFile, PEM: text})
}

// verifyRelease verifies the signature of a release's checksums, then the checksums of its files. It
// reports all invalid files.
func verifyRelease(dir string, key trust.Key) error {
	sums, err := os.ReadFile(filepath.Join(dir, sumsName))
	if err != nil {
		return err
	}
	bundle, err := os.ReadFile(filepath.Join(dir, bundleName))
	if err != nil {
		return fmt.Errorf("the checksums are not signed: %w", err)
	}
	if err := trust.VerifyBlob([]trust.Key{key}, sums, bundle); err != nil {
		return fmt.Errorf("%s: %w", sumsName, err) // untrusted checksums are not compared
	}
	var errs []error
	for line := range strings.Lines(string(sums)) {
		want, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || name != filepath.Base(name) {
			errs = append(errs, fmt.Errorf("%s: %q is not a checksum and a file name", sumsName, line))
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err != nil:
			errs = append(errs, err)
		case sum(data) != want:
			errs = append(errs, fmt.Errorf("%s has checksum %s, expected the signed checksum %s", name, sum(data), want))
		}
	}
	return errors.Join(errs...)
}
