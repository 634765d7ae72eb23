//go:build windows

// Command guest contains the programs around a log on a Windows host: one prints lines, one reads the log, and
// one rotates the log as the agent does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/logs"
	"github.com/windows-machine-config/wmco/internal/host/windows"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func main() {
	verbs := map[string]func(string) error{"print": printLines, "hold": holdLog, "rotate": rotateLogs}
	if len(os.Args) != 3 || verbs[os.Args[1]] == nil {
		exitOn(errors.New("usage: guest print FOLDER | hold LOG | rotate LIST"))
	}
	exitOn(verbs[os.Args[1]](os.Args[2]))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// printLines prints numbered lines until a file stop exists in the directory. The file printed receives each
// number before the line is printed, the file failed the numbers of lines that could not be printed.
func printLines(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	printed, err := os.Create(filepath.Join(folder, "printed"))
	if err != nil {
		return err
	}
	failed, err := os.Create(filepath.Join(folder, "failed"))
	if err != nil {
		return err
	}
	pace := time.NewTicker(5 * time.Millisecond)
	for number := 1; ; number++ {
		if _, err := os.Stat(filepath.Join(folder, "stop")); err == nil {
			return errors.Join(printed.Close(), failed.Close())
		}
		if _, err := fmt.Fprintf(printed, "line %d\n", number); err != nil {
			return err
		}
		if _, err := fmt.Printf("line %d\n", number); err != nil {
			if _, err := fmt.Fprintf(failed, "line %d\n", number); err != nil {
				return err
			}
		}
		<-pace.C
	}
}

// holdLog opens a log as a kubelet does that serves the log, and holds it open.
func holdLog(path string) error {
	log, err := os.Open(path) // with FILE_SHARE_READ and FILE_SHARE_WRITE only
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Println("held")
	for range time.Tick(time.Hour) { // until the process is ended
	}
	return nil
}

// rotateLogs rotates the logs of a NodeSpec, read from a JSON file, with the agent's code.
func rotateLogs(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var list []nodespec.Log
	if err := json.Unmarshal(content, &list); err != nil {
		return err
	}
	host, err := windows.Open()
	if err != nil {
		return err
	}
	logs.NewRotator(host, clock.RealClock{}, logs.NewServiceLog(host, clock.RealClock{}, os.Stdout)).RotateIfDue(context.Background(), list)
	return nil
}
