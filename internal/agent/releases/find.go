// Package releases maintains the programs of the node on the host: payload files in a directory for each
// release, and received files that are not installed yet. The package finds, unpacks and patches payload files,
// and completes a release with a manifest. The plan decides which releases to install and remove.
package releases

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// manifest is the file that completes a release on the host. With a manifest, files need not be read again to
// know their content: a changed file has another size or time.
type manifest struct {
	Component string         `json:"component"`
	Version   string         `json:"version"`
	Files     []manifestFile `json:"files"`
}

type manifestFile struct {
	Name     string    `json:"name"`
	SHA256   string    `json:"sha256"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// Found describes the payload files on the host.
type Found struct {
	// Payload contains the paths of the payload files by SHA-256.
	Payload map[string]string

	from  host.Files
	known map[string]plan.FileFact // the files of all releases, by lower-case path
}

// File returns the facts of a release file on the host.
func (f *Found) File(path string) (fact plan.FileFact, there bool) {
	fact, there = f.known[strings.ToLower(path)]
	return fact, there
}

// Find finds the payload files on the host, including files of incomplete releases and files that are not
// installed yet.
func Find(ctx context.Context, from host.Files) (*Found, error) {
	f := &Found{Payload: map[string]string{}, from: from, known: map[string]plan.FileFact{}}
	return f, f.findReleases(ctx)
}

func (f *Found) findReleases(ctx context.Context) error {
	folders, err := hostutil.ListDirectory(ctx, f.from, nodespec.ReleasesRoot)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if !folder.Directory {
			continue
		}
		if nodespec.IsSamePath(folder.Path, nodespec.IncomingRoot) {
			err = f.findIncoming(ctx)
		} else {
			err = f.inspectRelease(ctx, folder.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findIncoming finds unpacked files that are not installed. Files are renamed to their SHA-256 once complete.
func (f *Found) findIncoming(ctx context.Context) error {
	unpacked, err := hostutil.ListDirectory(ctx, f.from, nodespec.IncomingRoot)
	if err != nil {
		return err
	}
	for _, file := range unpacked {
		if _, known := f.Payload[file.Name]; !known && len(file.Name) == 64 {
			f.Payload[file.Name] = file.Path
		}
	}
	return nil
}

func (f *Found) inspectRelease(ctx context.Context, directory string) error {
	data, err := hostutil.ReadFile(ctx, f.from, directory+`\`+nodespec.ReleaseManifest)
	if err != nil {
		return err
	}
	var found manifest
	complete := json.Unmarshal(data, &found) == nil
	recorded := map[string]manifestFile{}
	for _, file := range found.Files {
		recorded[strings.ToLower(directory+`\`+file.Name)] = file
	}
	return f.inspectDirectory(ctx, directory, complete, recorded)
}

// inspectDirectory inspects the files of a release, including subdirectories.
func (f *Found) inspectDirectory(ctx context.Context, directory string, complete bool, recorded map[string]manifestFile) error {
	infos, err := hostutil.ListDirectory(ctx, f.from, directory)
	if err != nil {
		return err
	}
	for _, info := range infos {
		fact := plan.FileFact{Size: info.Size, Access: info.Access}
		file, known := recorded[strings.ToLower(info.Path)]
		switch {
		case info.Directory:
			err = f.inspectDirectory(ctx, info.Path, complete, recorded)
		case info.Name == nodespec.ReleaseManifest:
			if complete {
				f.known[strings.ToLower(info.Path)] = fact
			}
			continue
		case known && file.Size == info.Size && file.Modified.Equal(info.Modified):
			fact.SHA256 = file.SHA256
		default:
			fact.SHA256, err = hostutil.FileDigest(ctx, f.from, info.Path)
		}
		if err != nil {
			return err
		}
		if fact.SHA256 != "" {
			f.known[strings.ToLower(info.Path)] = fact
			f.Payload[fact.SHA256] = info.Path
		}
	}
	return nil
}
