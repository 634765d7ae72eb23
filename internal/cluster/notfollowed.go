package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// reservedPrefix begins the names of the policies and namespaces that OpenShift creates for its own images.
const reservedPrefix = "openshift"

// readNotFollowed reports the objects of kinds that Linux workers follow and Windows nodes do not.
func (n *notices) readNotFollowed(ctx context.Context, reader client.Reader, _ *nodespec.Cluster) error {
	for _, report := range []func(context.Context, client.Reader) error{
		n.readClusterImagePolicies, n.readImagePolicies, n.readContentSourcePolicies, n.readMachineConfigurations,
	} {
		if err := report(ctx, reader); err != nil {
			return err
		}
	}
	return nil
}

func (n *notices) readClusterImagePolicies(ctx context.Context, reader client.Reader) error {
	list := &configv1.ClusterImagePolicyList{}
	if err := listOptional(ctx, reader, list, "ClusterImagePolicy"); err != nil {
		return err
	}
	for _, policy := range byName(list.Items, func(p configv1.ClusterImagePolicy) string { return p.Name }) {
		if isReserved(policy.Name) {
			continue // for images of OpenShift itself, which are not for Windows
		}
		n.addNotice(subject{"ClusterImagePolicy " + policy.Name, policy.ResourceVersion}, scopesField, unverifiedMessage(policy.Spec.Scopes, ""))
	}
	return nil
}

func (n *notices) readImagePolicies(ctx context.Context, reader client.Reader) error {
	list := &configv1.ImagePolicyList{}
	if err := listOptional(ctx, reader, list, "ImagePolicy"); err != nil {
		return err
	}
	for _, policy := range byName(list.Items, func(p configv1.ImagePolicy) string { return p.Namespace + "/" + p.Name }) {
		if isReserved(policy.Namespace) {
			continue
		}
		n.addNotice(subject{"ImagePolicy " + policy.Namespace + "/" + policy.Name, policy.ResourceVersion}, scopesField,
			unverifiedMessage(policy.Spec.Scopes, " of namespace "+policy.Namespace))
	}
	return nil
}

// isReserved reports whether a name is reserved for OpenShift.
func isReserved(name string) bool {
	return name == reservedPrefix || strings.HasPrefix(name, reservedPrefix+"-")
}

const scopesField = "spec.scopes"

// maxScopes is the maximum number of scopes in a message.
const maxScopes = 3

// unverifiedMessage returns the message for a signature policy. containerd verifies no signatures.
func unverifiedMessage(scopes []configv1.ImageScope, pods string) string {
	return fmt.Sprintf("Windows nodes do not verify the signatures of images: images that Linux nodes reject run in pods%s on Windows nodes (%s). "+
		"Let only trusted users push to these registries, or block them in Image cluster, %s.", pods, listNames(scopes, maxScopes), blockedField)
}

// listNames returns the first names, separated by commas, and the number of the remaining names.
func listNames[T ~string](names []T, limit int) string {
	var listed []string
	for _, name := range names[:min(len(names), limit)] {
		listed = append(listed, formatExcerpt(string(name)))
	}
	if more := len(names) - len(listed); more > 0 {
		listed = append(listed, fmt.Sprintf("%d more", more))
	}
	return strings.Join(listed, ", ")
}

func (n *notices) readContentSourcePolicies(ctx context.Context, reader client.Reader) error {
	list := &operatorv1alpha1.ImageContentSourcePolicyList{}
	if err := listOptional(ctx, reader, list, "ImageContentSourcePolicy"); err != nil {
		return err
	}
	for _, policy := range byName(list.Items, func(p operatorv1alpha1.ImageContentSourcePolicy) string { return p.Name }) {
		if len(policy.Spec.RepositoryDigestMirrors) == 0 {
			continue
		}
		n.addNotice(subject{"ImageContentSourcePolicy " + policy.Name, policy.ResourceVersion}, "spec.repositoryDigestMirrors",
			"Windows nodes do not use the mirrors of this kind. Convert it to an ImageDigestMirrorSet: oc adm migrate icsp.")
	}
	return nil
}

func byName[T any](objects []T, name func(T) string) []T {
	slices.SortFunc(objects, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return objects
}
