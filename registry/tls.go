package registry

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

// tlsConfig returns how to speak TLS with a repository's host: the system's
// authorities and those of CertDirs, the client certificate found there, and
// for an insecure one no check at all.
func (c *Client) tlsConfig(repo name.Repository) (*tls.Config, error) {
	host := repo.RegistryStr()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.insecure(repo) {
		config.InsecureSkipVerify = true
	}
	for _, dir := range c.CertDirs {
		if err := addCertificates(config, filepath.Join(dir, host)); err != nil {
			return nil, fmt.Errorf("reading certificates for %s: %w", host, err)
		}
	}
	return config, nil
}

// insecure reports whether the user has said that a repository's host need not
// prove who it is.
func (c *Client) insecure(repo name.Repository) bool {
	return slices.Contains(c.Insecure, repo.RegistryStr()) || c.Mirrors.insecure(imageref.Split(repo.Name()).Name())
}

// addCertificates reads one host's directory as docker and podman do: *.crt
// are authorities, *.cert with the *.key of the same name is the client's own.
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
			config.RootCAs = x509.NewCertPool() // a system without one
		}
	}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: no certificate in it", path)
	}
	return nil
}
