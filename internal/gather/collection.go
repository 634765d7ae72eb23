package gather

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// collection collects readable data, and records the gaps. It is safe for concurrent use.
type collection struct {
	reader client.Reader
	sink   sink

	mu sync.Mutex
	// missing holds a line for each gap.
	missing []string
	// broken is the error that prevents further writes, for example a full disk.
	broken error
	files  int
}

// write adds a file.
func (c *collection) write(name string, content []byte) {
	err := c.sink.addFile(name, content)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.broken == nil {
		c.broken = err
	}
	c.files++
}

// maxGap is the maximum length of a line about a gap, in bytes. Many of these lines quote a host.
const maxGap = 4096

// recordGap records a gap.
func (c *collection) recordGap(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missing = append(c.missing, sanitize.Plain(fmt.Sprintf("%s: %v", what, err), maxGap))
}

// listGaps returns the gaps, sorted by name.
func (c *collection) listGaps() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.missing))
}

// newGroupVersionKind returns a kind of objects in a version of its group.
func newGroupVersionKind(group, version, name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
}

// writeObjects writes the objects of a kind into one file. A kind that the cluster does not serve is no gap.
func (c *collection) writeObjects(ctx context.Context, file string, of schema.GroupVersionKind, options ...client.ListOption) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(of.GroupVersion().WithKind(of.Kind + "List"))
	switch err := c.reader.List(ctx, list, options...); {
	case meta.IsNoMatchError(err):
		return
	case err != nil:
		c.recordGap(file, err)
		return
	}
	for i := range list.Items {
		redactObject(&list.Items[i])
	}
	c.writeYAML(file, list)
}

// writeObject writes one object into a file.
func (c *collection) writeObject(ctx context.Context, file string, of schema.GroupVersionKind, key client.ObjectKey) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(of)
	switch err := c.reader.Get(ctx, key, object); {
	case meta.IsNoMatchError(err):
		return
	case err != nil:
		c.recordGap(file, err)
		return
	}
	redactObject(object)
	c.writeYAML(file, object)
}

func (c *collection) writeYAML(file string, object interface{ UnstructuredContent() map[string]any }) {
	encoded, err := yaml.Marshal(object.UnstructuredContent())
	if err != nil {
		c.recordGap(file, err)
		return
	}
	c.write(file, encoded)
}

// maxFileName is the maximum length of a file name created from foreign text, in bytes. File systems allow 255
// bytes, including the extension.
const maxFileName = 200

// fileName converts a foreign name to a file name without directories.
func fileName(name string) string {
	name = strings.NewReplacer("/", "_", `\`, "_", ":", "_").Replace(sanitize.Plain(name, maxFileName))
	if strings.Trim(name, ".") == "" {
		return "_"
	}
	return name
}
