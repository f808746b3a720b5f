package oci

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/quayside/quayside/internal/imageref"
)

// tlsConfig returns the TLS configuration for the host of a repository: with the certificate
// authorities of the system and of CertDirs, and the client certificate in CertDirs. The
// certificate of an insecure host is not verified.
func (c *Client) tlsConfig(repo name.Repository) (*tls.Config, error) {
	host := repo.RegistryStr()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.isInsecure(repo) {
		config.InsecureSkipVerify = true
	}
	for _, dir := range c.CertDirs {
		if err := addCertificates(config, filepath.Join(dir, host)); err != nil {
			return nil, fmt.Errorf("reading certificates for %s: %w", host, err)
		}
	}
	return config, nil
}

// isInsecure reports whether the user has marked the host of a repository as insecure.
func (c *Client) isInsecure(repo name.Repository) bool {
	return slices.Contains(c.Insecure, repo.RegistryStr()) || c.Mirrors.isInsecure(imageref.Split(repo.Name()).Name())
}

// addCertificates adds the certificates in dir, the directory of one host, with the naming of
// docker and podman: *.crt are certificate authorities, and *.cert and *.key with the same name are
// a client certificate.
func addCertificates(config *tls.Config, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch filepath.Ext(e.Name()) {
		case ".crt":
			if err := addAuthority(config, path); err != nil {
				return err
			}
		case ".cert":
			pair, err := tls.LoadX509KeyPair(path, strings.TrimSuffix(path, ".cert")+".key")
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			config.Certificates = append(config.Certificates, pair)
		}
	}
	return nil
}

func addAuthority(config *tls.Config, path string) error {
	pem, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if config.RootCAs == nil {
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool() // the system has no certificate pool
		}
	}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: contains no certificate", path)
	}
	return nil
}
