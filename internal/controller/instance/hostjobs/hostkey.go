package hostjobs

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// ReasonHostKeyChanged is the reason for a host that does not present its pinned key.
const ReasonHostKeyChanged = string(remote.ReasonHostKeyChanged)

// IsAnotherHost reports whether a connection has failed because the host presented a key other than the required
// key.
func IsAnotherHost(err error) bool {
	reason := remote.ReasonOf(err)
	return reason == remote.ReasonHostKeyChanged || reason == remote.ReasonHostKeyUnexpected
}

// ParseHostKey parses a host key in base64.
func ParseHostKey(key string) (*v1alpha1.HostKey, error) {
	data, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return nil, fmt.Errorf("it is not base64: %w", err)
	}
	parsed, err := ssh.ParsePublicKey(data)
	if err != nil {
		return nil, fmt.Errorf("it is not a public key: %w", err)
	}
	return &v1alpha1.HostKey{Type: parsed.Type(), Key: key, Fingerprint: ssh.FingerprintSHA256(parsed)}, nil
}

// ExplainChangedKey returns the error of a connection to the host of an instance. If the host presented the
// pinned key of another instance, the error names that instance. instances are all instances.
func ExplainChangedKey(instance *v1alpha1.WindowsInstance, instances []v1alpha1.WindowsInstance, err error) error {
	var changed *remote.HostKeyChangedError
	if !errors.As(err, &changed) {
		return err
	}
	holder := nodeidentity.HostKeyHolder(instance, base64.StdEncoding.EncodeToString(changed.Presented.Data), instances)
	if holder == nil {
		return err
	}
	return keyOfAnotherHost(instance, holder, changed)
}

// isHostKeyAccepted reports whether an administrator has accepted a changed host key. A key that belongs to the host of
// another node is never accepted.
func (r ConnectRequest) isHostKeyAccepted(ctx context.Context, changed *remote.HostKeyChangedError) (bool, error) {
	key := base64.StdEncoding.EncodeToString(changed.Presented.Data)
	others, err := r.WithHostKey(ctx, key)
	if err != nil {
		return false, fmt.Errorf("find the instance of a changed host key: %w", err)
	}
	holder := nodeidentity.HostKeyHolder(r.Instance, key, others)
	switch {
	case nodeidentity.IsHostKeyAccepted(r.Instance, changed.Presented.Fingerprint()) && nodeidentity.CanAcceptHostKey(r.Instance, holder):
		return true, nil
	case holder != nil:
		return false, keyOfAnotherHost(r.Instance, holder, changed)
	}
	return false, nil
}

// keyOfAnotherHost returns the error for a host that presents the pinned key of another instance. The error does
// not suggest acceptance, because the operator would configure, restart and restore the host of another node.
func keyOfAnotherHost(instance, holder *v1alpha1.WindowsInstance, changed *remote.HostKeyChangedError) error {
	message := fmt.Sprintf("the host presents the SSH host key %s (%s) of %s, but the pinned key is %s (%s): "+
		"the addresses of the hosts may have been swapped, or the hosts were made from one image", changed.Presented.Fingerprint(),
		changed.Presented.Type, nodeidentity.DescribeHolder(holder), changed.Pinned.Fingerprint(), changed.Pinned.Type)
	if nodeidentity.IsHostKeyAccepted(instance, changed.Presented.Fingerprint()) {
		message += ". The annotation " + v1alpha1.AnnotationAcceptHostKey + " has no effect for the host key of another node"
	}
	return &remote.Error{Reason: remote.ReasonHostKeyChanged, Host: instance.Spec.Address, Stage: remote.StageHostKey, Err: changed,
		Message: message,
		Next: "restore the addresses of the hosts, or correct the list of hosts; until then, the operator does not log in to the host. " +
			"If the host was reinstalled from an image with keys in it, generate new host keys on it: delete C:\\ProgramData\\ssh\\ssh_host_*, " +
			"run ssh-keygen -A, and restart the service sshd"}
}
