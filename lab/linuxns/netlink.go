package linuxns

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// addAddresses sets the loopback interface up and adds the addresses with the full prefix length. It uses
// rtnetlink, because programs such as ip may be missing.
func addAddresses(addresses []netip.Addr) error {
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback interface: %w", err)
	}
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open a netlink socket: %w", err)
	}
	defer unix.Close(socket)
	up := encodeStruct(unix.IfInfomsg{Index: int32(loopback.Index), Flags: unix.IFF_UP, Change: unix.IFF_UP})
	if err := sendNetlinkMessage(socket, unix.RTM_NEWLINK, 0, up); err != nil {
		return fmt.Errorf("bring the loopback interface up: %w", err)
	}
	for _, address := range addresses {
		if !address.Is4() {
			return fmt.Errorf("add %s to the loopback interface: it is no IPv4 address", address)
		}
		message := encodeStruct(unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: 32, Scope: unix.RT_SCOPE_UNIVERSE,
			Index: uint32(loopback.Index)})
		message = append(message, encodeAttribute(unix.IFA_LOCAL, address.AsSlice())...)
		message = append(message, encodeAttribute(unix.IFA_ADDRESS, address.AsSlice())...)
		if err := sendNetlinkMessage(socket, unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, message); err != nil {
			return fmt.Errorf("add %s to the loopback interface: %w", address, err)
		}
	}
	return nil
}

// sendNetlinkMessage sends one message and waits for the kernel's acknowledgement.
func sendNetlinkMessage(socket int, kind uint16, flags uint16, body []byte) error {
	message := append(encodeStruct(unix.NlMsghdr{
		Len: uint32(unix.SizeofNlMsghdr + len(body)), Type: kind, Flags: flags | unix.NLM_F_REQUEST | unix.NLM_F_ACK,
	}), body...)
	if err := unix.Sendto(socket, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, unix.Getpagesize())
	n, _, err := unix.Recvfrom(socket, answer, 0)
	if err != nil {
		return err
	}
	var header unix.NlMsghdr
	var result unix.NlMsgerr
	reader := bytes.NewReader(answer[:n])
	if err := binary.Read(reader, binary.NativeEndian, &header); err != nil {
		return fmt.Errorf("read the kernel's answer: %w", err)
	}
	if header.Type != unix.NLMSG_ERROR {
		return fmt.Errorf("the kernel answered with message type %d", header.Type)
	}
	if err := binary.Read(reader, binary.NativeEndian, &result); err != nil {
		return fmt.Errorf("read the kernel's answer: %w", err)
	}
	if result.Error != 0 {
		return unix.Errno(-result.Error)
	}
	return nil
}

// encodeAttribute encodes an attribute with a value length that is a multiple of 4 bytes.
func encodeAttribute(kind uint16, value []byte) []byte {
	return append(encodeStruct(unix.RtAttr{Len: uint16(unix.SizeofRtAttr + len(value)), Type: kind}), value...)
}

// encodeStruct returns the bytes of a kernel structure.
func encodeStruct[T unix.NlMsghdr | unix.IfInfomsg | unix.IfAddrmsg | unix.RtAttr](v T) []byte {
	return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)))
}
