package main

import (
	"debug/buildinfo"
	"fmt"
)

func checkAgent(file string) error {
	if err := checkExecutable(file); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if info.Path != agentPackage {
		return fmt.Errorf("%s is %s and not %s", file, info.Path, agentPackage)
	}
	return nil
}
