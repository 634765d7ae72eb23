// Package canary looks for secrets in places where they must not be.
package canary

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Secrets are values that nobody may see, by their kind.
type Secrets map[string][]string

// shortest is the length in characters from which a part of a key is no chance.
const shortest = 32

// AddKey enters a private key in PEM form: its lines but the first, which is the same for all keys of a kind, and the
// whole as a Secret holds it.
func (s Secrets) AddKey(what string, key []byte) {
	first := true
	for line := range strings.Lines(string(key)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-----") || len(line) < shortest {
			continue
		}
		if !first {
			s[what] = append(s[what], line)
		}
		first = false
	}
	encoded := base64.StdEncoding.EncodeToString(key)
	s[what] = append(s[what], encoded[len(encoded)/2:][:shortest])
}

// AddPair enters the private key of a file that holds a certificate and its key.
func (s Secrets) AddPair(what string, pair []byte) error {
	begin := bytes.Index(pair, []byte("-----BEGIN EC PRIVATE KEY"))
	if begin < 0 {
		return fmt.Errorf("%s holds no private key", what)
	}
	s.AddKey(what, pair[begin:])
	return nil
}

// In returns the secrets that a text holds.
func (s Secrets) In(text []byte) (found []string) {
	for what, values := range s {
		if slices.ContainsFunc(values, func(value string) bool { return bytes.Contains(text, []byte(value)) }) {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return found
}

// Object is an object of the API that was looked at.
type Object struct {
	Kind, Namespace, Name string
	// Holds are the secrets in it.
	Holds []string
}

// InCluster looks at every object of the API that can be listed.
func (s Secrets) InCluster(ctx context.Context, config *rest.Config) ([]Object, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // of kinds that are going out of use
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("look at all objects: %w", err)
	}
	kinds, err := discovered.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("look at all objects: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("look at all objects: %w", err)
	}
	var objects []Object
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("look at all objects: %w", err)
		}
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") {
				continue
			}
			list, err := client.Resource(version.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", kind.Name, err)
			}
			for i := range list.Items {
				object, err := s.inObject(&list.Items[i])
				if err != nil {
					return nil, err
				}
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}

func (s Secrets) inObject(object *unstructured.Unstructured) (Object, error) {
	looked := Object{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	text, err := json.Marshal(object.Object)
	if err != nil {
		return looked, fmt.Errorf("look at %s %s: %w", looked.Kind, looked.Name, err)
	}
	looked.Holds = s.In(text)
	return looked, nil
}
