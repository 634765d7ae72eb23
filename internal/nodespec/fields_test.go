package nodespec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The digest is calculated from the JSON form. The test changes each leaf of that form, including fields that are
// added to NodeSpec later.
func TestDigest_ChangesWithEveryField(t *testing.T) {
	spec := mustMake(t, azureInputs())
	spec.Identity.Certificate = "certificate"
	paths := leafPaths("", decodeTree(t, spec))
	unimportant := []string{".version", ".identity.certificate"}
	rapid.Check(t, func(r *rapid.T) {
		path := rapid.SampledFrom(paths).Draw(r, "field")
		tree := decodeTree(t, spec)
		changeLeaf(tree, path)
		changed, err := json.Marshal(tree)
		if err != nil {
			r.Fatal(err)
		}
		var other NodeSpec
		if err := json.Unmarshal(changed, &other); err != nil {
			r.Fatalf("%s: %v", path, err)
		}
		if same := other.Digest() == spec.Digest(); same != slices.Contains(unimportant, path) {
			r.Fatalf("a change of %s leaves the digest as it is: %v", path, same)
		}
	})
}

func decodeTree(t *testing.T, spec NodeSpec) any {
	t.Helper()
	data, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// leafPaths returns the paths of all strings, numbers and booleans.
func leafPaths(path string, tree any) []string {
	var paths []string
	switch node := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			paths = append(paths, leafPaths(path+"."+key, node[key])...)
		}
	case []any:
		for i, element := range node {
			paths = append(paths, leafPaths(fmt.Sprintf("%s.%d", path, i), element)...)
		}
	default:
		paths = append(paths, path)
	}
	return paths
}

func changeLeaf(tree any, path string) {
	next, rest, deeper := strings.Cut(strings.TrimPrefix(path, "."), ".")
	switch node := tree.(type) {
	case map[string]any:
		if deeper {
			changeLeaf(node[next], rest)
			return
		}
		if text, isText := node[next].(string); isText && next == "der" { // in base64
			node[next] = "AAAA" + text
			return
		}
		node[next] = changeValue(node[next])
	case []any:
		var i int
		_, _ = fmt.Sscan(next, &i)
		if deeper {
			changeLeaf(node[i], rest)
			return
		}
		node[i] = changeValue(node[i])
	}
}

func changeValue(leaf any) any {
	switch value := leaf.(type) {
	case string:
		return value + "x"
	case float64:
		return value + 1
	case bool:
		return !value
	}
	return leaf
}

//
func TestKubeProxyConfiguration(t *testing.T) {
	var config struct {
		Kind, Mode, HostnameOverride string
		WinKernel                    struct {
			NetworkName string
			EnableDSR   bool
		}
	}
	if err := json.Unmarshal([]byte(fileOf(t, `C:\k\kube-proxy.conf`).Content), &config); err != nil {
		t.Fatal(err)
	}
	if config.Kind != "KubeProxyConfiguration" || config.Mode != "kernelspace" || config.HostnameOverride != "win-a" {
		t.Errorf("%+v", config)
	}
	if !config.WinKernel.EnableDSR || config.WinKernel.NetworkName != "OVNKubernetesHybridOverlayNetwork" {
		t.Errorf("direct server return is not on, or on another network: %+v", config.WinKernel)
	}
}
