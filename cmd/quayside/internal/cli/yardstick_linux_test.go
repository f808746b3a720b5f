package cli_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// readTokens is the yardstick program. It reads every JSON token of every file in the directories dirs.
func readTokens(dirs []string) error {
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			for dec := json.NewDecoder(f); ; {
				if _, err := dec.Token(); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
