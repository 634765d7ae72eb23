package nodespec

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// nodeFiles returns all configuration files of a node.
func nodeFiles(in Inputs) ([]File, error) {
	kubelet, err := kubeletFiles(in)
	return slices.Concat(
		clientFileList(in),
		kubelet,
		credentialProviderFiles(in),
		cloudNodeManagerFiles(in),
		cniFiles(in),
		kubeProxyFiles(in),
		exporterFiles(in),
		containerdFiles(in),
	), err
}

// newInheritedFile returns a file with the access rules of its directory.
func newInheritedFile(path, content string, needs ...Need) File {
	return File{Path: path, Content: content, Access: host.AccessInherited, Needs: needs}
}

// newAdminDirectory returns a directory for SYSTEM and administrators only.
func newAdminDirectory(path string) Directory {
	return Directory{Path: path, Access: host.AccessAdministrators}
}

// object is a JSON object. Fields are written in the order of their names, so that equal objects result in equal
// files.
type object = map[string]any

func encodeJSON(o object) string {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		// Objects contain only values that JSON supports.
		panic(fmt.Sprintf("encode a configuration file: %v", err))
	}
	return string(data) + "\n"
}
