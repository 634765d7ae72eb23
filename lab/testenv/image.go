package testenv

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
)

// Platforms with a Machine API, as named in Infrastructure.
const (
	platformNone    = "None"
	platformAWS     = "AWS"
	platformAzure   = "Azure"
	platformGCP     = "GCP"
	platformNutanix = "Nutanix"
	platformVSphere = "VSphere"
)

// imageBuild matches the build in the name of an image: ami-20348.169.
var imageBuild = regexp.MustCompile(`(17763|20348|26100)\.(\d{1,5})`)

// imageSystem returns the Windows version in the name of an image: 2019 or 2025, a build with its revision, else
// 2022.
func imageSystem(image string) host.SystemInfo {
	if build := imageBuild.FindStringSubmatch(image); build != nil {
		system := map[string]host.SystemInfo{
			"17763": fake.WindowsServer2019(), "20348": fake.WindowsServer2022(), "26100": fake.WindowsServer2025(),
		}[build[1]]
		system.Revision, _ = strconv.Atoi(build[2])
		return system
	}
	switch {
	case strings.Contains(image, "2019"):
		return fake.WindowsServer2019()
	case strings.Contains(image, "2025"):
		return fake.WindowsServer2025()
	}
	return fake.WindowsServer2022()
}

// hasKeyInImage reports whether administrators of the platform create their own image, with an SSH server that
// accepts the operator's key. On other platforms the image is the vendor's, and the user data installs server and
// key.
func hasKeyInImage(platform string) bool {
	return platform == platformVSphere || platform == platformNutanix
}

// hostKeyInImage returns the SSH host key that all virtual machines of an image share, nil if each creates its own:
// sshd of the master virtual machine wrote the key, and Sysprep preserves it. The name of such an image ends in
// "-with-host-key".
func hostKeyInImage(platform, image string) ed25519.PrivateKey {
	if !hasKeyInImage(platform) || !strings.HasSuffix(image, "-with-host-key") {
		return nil
	}
	seed := sha256.Sum256([]byte(image))
	return ed25519.NewKeyFromSeed(seed[:])
}

// computerName returns the computer name that the platform assigns to a new Windows.
func computerName(vm fakemachineapi.VirtualMachine) string {
	switch vm.Platform {
	case platformAWS:
		return "EC2AMAZ-" + identifierFromID(vm.ID, 7)
	case platformVSphere, platformNutanix:
		return "WIN-" + identifierFromID(vm.ID, 11)
	}
	return vm.MachineName
}

// identifierFromID returns n capital letters and digits derived from the ID.
func identifierFromID(id string, n int) string {
	sum := sha256.Sum256([]byte(id))
	return base32.StdEncoding.EncodeToString(sum[:])[:n]
}

// machineUser returns the administrator of the platform's images.
func machineUser(platform string) string {
	if platform == platformAzure {
		return "capi"
	}
	return "Administrator"
}

// MachineAddresses is the maximum number of Windows Machines at a time.
const MachineAddresses = 250

// MachineAddress returns the IPv4 address of the n-th virtual machine with Windows, from 1 to MachineAddresses.
func MachineAddress(n int) string { return fmt.Sprintf("10.9.128.%d", n) }

// linuxAddress returns the address of the n-th virtual machine with Linux, from 1. No server listens at this address.
func linuxAddress(n int) string { return fmt.Sprintf("10.0.%d.%d", (n-1)/250, (n-1)%250+1) }

// internalDNS returns the name of a virtual machine in the platform's DNS; "" if there is none.
func internalDNS(platform, machine, address string) string {
	switch platform {
	case platformAWS:
		return "ip-" + strings.ReplaceAll(address, ".", "-") + ".ec2.internal"
	case platformAzure:
		return machine + ".lab.internal.cloudapp.net"
	case platformGCP:
		return machine + ".us-central1-a.c.lab-project.internal"
	}
	return ""
}

// cloudName returns the name of a virtual machine in the platform's metadata service; "" if the operator does not use
// the name.
func cloudName(platform, machine, address string) string {
	switch platform {
	case platformAWS:
		return internalDNS(platform, machine, address)
	case platformGCP:
		return machine
	}
	return ""
}

// MachineDNSName returns the DNS name of an address on a platform that derives names from addresses; "" on other
// platforms.
func MachineDNSName(platform, address string) string {
	if platform != platformAWS {
		return ""
	}
	return internalDNS(platform, "", address)
}
