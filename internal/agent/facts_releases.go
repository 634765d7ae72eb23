package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// releaseManifest is the file that completes a release on the host. With it the files need not be read again to know their content: one
// whose size or time has changed since is.
type releaseManifest struct {
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

// releases finds the payload files that lie on the host, also those of a release that was cut off and those not yet installed.
func (g *gatherer) releases(ctx context.Context) error {
	g.payload, g.facts.Payload = map[string]plan.FileFact{}, map[string]string{}
	folders, err := g.readDir(ctx, nodespec.ReleasesRoot)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if !folder.Directory {
			continue
		}
		if nodespec.SamePath(folder.Path, nodespec.IncomingRoot) {
			err = g.incoming(ctx)
		} else {
			err = g.release(ctx, folder.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readDir lists a folder; nothing when it is not there.
func (a *agent) readDir(ctx context.Context, path string) ([]host.FileInfo, error) {
	infos, err := a.host.Files.ReadDir(ctx, path)
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	return infos, nil
}

// incoming are files that were unpacked and not installed. They got their name when they were complete.
func (g *gatherer) incoming(ctx context.Context) error {
	files, err := g.readDir(ctx, nodespec.IncomingRoot)
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, known := g.facts.Payload[file.Name]; !known && len(file.Name) == 64 {
			g.facts.Payload[file.Name] = file.Path
		}
	}
	return nil
}

func (g *gatherer) release(ctx context.Context, directory string) error {
	data, err := g.store.read(ctx, directory+`\`+nodespec.ReleaseManifest)
	if err != nil {
		return err
	}
	var manifest releaseManifest
	complete := json.Unmarshal(data, &manifest) == nil
	recorded := map[string]manifestFile{}
	for _, file := range manifest.Files {
		recorded[lower(directory+`\`+file.Name)] = file
	}
	return g.folder(ctx, directory, complete, recorded)
}

// folder looks at the files of a release, also in folders below.
func (g *gatherer) folder(ctx context.Context, directory string, complete bool, recorded map[string]manifestFile) error {
	infos, err := g.readDir(ctx, directory)
	if err != nil {
		return err
	}
	for _, info := range infos {
		fact := plan.FileFact{Size: info.Size, Access: info.Access}
		file, known := recorded[lower(info.Path)]
		switch {
		case info.Directory:
			err = g.folder(ctx, info.Path, complete, recorded)
		case info.Name == nodespec.ReleaseManifest:
			if complete {
				g.payload[lower(info.Path)] = fact
			}
			continue
		case known && file.Size == info.Size && file.Modified.Equal(info.Modified):
			fact.SHA256 = file.SHA256
		default:
			fact.SHA256, err = g.hashFile(ctx, info.Path)
		}
		if err != nil {
			return err
		}
		if fact.SHA256 != "" {
			g.payload[lower(info.Path)] = fact
			g.facts.Payload[fact.SHA256] = info.Path
		}
	}
	return nil
}

// lower makes a path comparable.
func lower(path string) string { return strings.ToLower(path) }
