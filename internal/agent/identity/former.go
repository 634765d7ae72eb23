package identity

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// OldCertificates deletes former certificates from the stores of the node's programs. client-go's file store adds a
// file with key and certificate at each rotation and deletes none. hybrid-overlay-node would add one every day.
type OldCertificates struct {
	Files host.Files
	Clock clock.PassiveClock
	due   time.Time
}

// keptCertificates is the number of files that a store keeps besides the current certificate: a program may be
// about to activate the newest.
const keptCertificates = 2

// storedCertificate matches the name of a certificate in a store of client-go, and captures its prefix.
var storedCertificate = regexp.MustCompile(`^([A-Za-z0-9-]+)-[0-9]{4}(-[0-9]{2}){5}\.pem$`)

// CleanStores cleans the stores, if a check is due. Failures are retried later: nothing depends on the cleanup.
func (f *OldCertificates) CleanStores(ctx context.Context, spec nodespec.NodeSpec) error {
	now := f.Clock.Now()
	if now.Before(f.due) {
		return nil
	}
	f.due = now.Add(timeouts.StoreCheckInterval)
	var failures []error
	for _, directory := range spec.Directories {
		if _, name := hostutil.SplitPath(directory.Path); strings.EqualFold(name, "pki") {
			failures = append(failures, f.cleanStore(ctx, directory.Path))
		}
	}
	return errors.Join(failures...)
}

func (f *OldCertificates) cleanStore(ctx context.Context, directory string) error {
	entries, err := hostutil.ListDirectory(ctx, f.Files, directory)
	if err != nil {
		return err
	}
	for _, link := range entries {
		prefix, is := strings.CutSuffix(link.Name, "-current.pem")
		if !is || link.LinkTarget == "" {
			continue // without a current certificate, former ones are unknown
		}
		for _, path := range removableCertificates(entries, prefix, link.LinkTarget) {
			if err := f.Files.Remove(ctx, path); err != nil {
				return fmt.Errorf("delete the former certificate %s: %w", path, err)
			}
		}
	}
	return nil
}

// removableCertificates returns the files of a store that are not in use and not among the newest. Names sort by
// time.
func removableCertificates(entries []host.FileInfo, prefix, current string) []string {
	var paths []string
	for _, entry := range entries {
		name := storedCertificate.FindStringSubmatch(entry.Name)
		_, target := hostutil.SplitPath(current)
		if name != nil && name[1] == prefix && !entry.Directory && entry.LinkTarget == "" && !strings.EqualFold(entry.Name, target) {
			paths = append(paths, entry.Path)
		}
	}
	slices.Sort(paths)
	return paths[:max(0, len(paths)-keptCertificates)]
}
