package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// account runs a program and prints its processor time in nanoseconds and its
// peak memory in bytes.
func account(args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("the system keeps no account of children")
	}
	_, err := fmt.Fprintln(os.Stdout, int64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()), used.Maxrss<<10)
	return err
}

// readTokens is the yardstick, as a program: every token of every file below
// the directories that it is given.
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
