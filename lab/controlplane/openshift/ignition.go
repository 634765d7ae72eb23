package openshift

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
)

// The part of Ignition's configuration, version 3, that is used here.
type (
	ignitionConfig struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
		Passwd struct {
			Users []ignitionUser `json:"users"`
		} `json:"passwd"`
		Storage struct {
			Files []ignitionFile `json:"files"`
		} `json:"storage"`
		Systemd struct {
			Units []ignitionUnit `json:"units"`
		} `json:"systemd"`
	}
	ignitionUser struct {
		Name              string   `json:"name"`
		SSHAuthorizedKeys []string `json:"sshAuthorizedKeys"`
	}
	ignitionFile struct {
		Path      string         `json:"path"`
		Mode      int            `json:"mode"`
		Overwrite bool           `json:"overwrite"`
		Contents  ignitionSource `json:"contents"`
	}
	ignitionSource struct {
		Compression string `json:"compression"`
		Source      string `json:"source"`
	}
	ignitionUnit struct {
		Name     string `json:"name"`
		Enabled  bool   `json:"enabled"`
		Contents string `json:"contents"`
	}
)

// workerIgnition returns the configuration of a worker, as rendered by the machine config operator.
func workerIgnition(v values) ([]byte, error) {
	var config ignitionConfig
	config.Ignition.Version = "3.5.0"
	config.Passwd.Users = []ignitionUser{{Name: "core", SSHAuthorizedKeys: []string{
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKURRtOAd/+ZLrqEzx1emySQc1A+t0hoaZAWFTsDGjj3 core@" + v.Domain,
	}}}
	err := eachWorkerFile("worker/files", v, func(name, contents string) {
		config.Storage.Files = append(config.Storage.Files, ignitionFile{
			Path: "/" + name, Mode: 0o644, Overwrite: true, Contents: ignitionSource{Source: dataURL(name, contents)},
		})
	})
	if err != nil {
		return nil, err
	}
	err = eachWorkerFile("worker/units", v, func(name, contents string) {
		config.Systemd.Units = append(config.Systemd.Units, ignitionUnit{Name: name, Enabled: true, Contents: contents})
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(config)
}

// eachWorkerFile renders the files below root, sorted by name, and skips empty files.
func eachWorkerFile(root string, v values, do func(name, contents string)) error {
	return fs.WalkDir(workerFiles, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := workerFiles.ReadFile(name)
		if err != nil {
			return err
		}
		contents, err := render(name, string(data), v)
		if err != nil {
			return fmt.Errorf("worker's Ignition: %w", err)
		}
		if len(contents) > 0 {
			do(strings.TrimPrefix(name, root+"/"), string(contents))
		}
		return nil
	})
}

// dataURL encodes contents in the two formats of a real cluster: its kubelet configuration controller uses
// base64, all other files are percent-encoded.
func dataURL(name, contents string) string {
	if path.Base(name) == "kubelet.conf" {
		return "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(contents))
	}
	return "data:," + url.PathEscape(contents)
}

// IgnitionPointer returns the user data of a Linux Machine with the URL of its Ignition configuration. The
// machine config server at this URL is not part of the lab.
func (v values) IgnitionPointer(role string) (string, error) {
	type source struct {
		Source string `json:"source"`
	}
	var pointer struct {
		Ignition struct {
			Config struct {
				Merge []source `json:"merge"`
			} `json:"config"`
			Version string `json:"version"`
		} `json:"ignition"`
	}
	pointer.Ignition.Version = "3.2.0"
	pointer.Ignition.Config.Merge = []source{{fmt.Sprintf("https://api-int.%s:22623/config/%s", v.Domain, role)}}
	data, err := json.Marshal(pointer)
	if err != nil {
		return "", fmt.Errorf("write the user data of role %s: %w", role, err)
	}
	return string(data), nil
}
