package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/internal/oci/sign"
	"github.com/quayside/quayside/internal/oci/trust"
)

// Names of the file with the checksums of a release, and of the sigstore bundle with its signature.
const (
	sumsName   = "SHA256SUMS"
	bundleName = sumsName + ".sigstore.json"
)

// signFile signs a file and writes the signature as a sigstore bundle.
func signFile(ctx context.Context, keyFile, password, file, bundleFile string) error {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	key, err := sign.NewKey(text, password)
	if err != nil {
		return fmt.Errorf("%s: %w", keyFile, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	bundle, err := key.SignBlob(ctx, data)
	if err != nil {
		return err
	}
	return os.WriteFile(bundleFile, bundle, 0o644)
}

// verifyRelease verifies the signature of a release's checksums with a public key, and then verifies the
// checksum of each file. The error lists all invalid files.
func verifyRelease(dir, keyFile string) error {
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(dir, sumsName))
	if err != nil {
		return err
	}
	bundle, err := os.ReadFile(filepath.Join(dir, bundleName))
	if err != nil {
		return fmt.Errorf("the checksums are not signed: %w", err)
	}
	if err := trust.VerifyBlob([]trust.Key{{Name: keyFile, PEM: key}}, sums, bundle); err != nil {
		return fmt.Errorf("%s: %w", sumsName, err) // do not compare files with untrusted checksums
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

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
