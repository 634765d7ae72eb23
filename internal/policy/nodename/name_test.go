package nodename

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

//
func TestOfCloud_ReturnsCloudNameOfMachine(t *testing.T) {
	addresses := func(names ...string) []corev1.NodeAddress {
		list := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.128.7"}}
		for _, name := range names {
			list = append(list, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: name})
		}
		return list
	}
	for name, c := range map[string]struct {
		answer        CloudAnswer
		want          string
		check, reason string
	}{
		"on AWS by its private DNS name": {answer: CloudAnswer{Platform: "AWS",
			Name: "ip-10-0-128-7.us-east-2.compute.internal"}, want: "ip-10-0-128-7.us-east-2.compute.internal"},
		"on GCP by the instance's name": {answer: CloudAnswer{Platform: "GCP", Name: "winworker-x2k4f"},
			want: "winworker-x2k4f"},
		"in small letters": {answer: CloudAnswer{Platform: "AWS", Name: "IP-10-0-128-7.EC2.internal"},
			want: "ip-10-0-128-7.ec2.internal"},
		"which its Machine confirms": {
			answer: CloudAnswer{Platform: "AWS", Name: "ip-10-0-128-7.ec2.internal",
				Addresses: addresses("ip-10-0-128-7.ec2.internal")}, want: "ip-10-0-128-7.ec2.internal",
		},
		"also under a domain of the VPC's own": {
			answer: CloudAnswer{Platform: "AWS", Name: "ip-10-0-128-7.corp.example",
				Addresses: addresses("ip-10-0-128-7.ec2.internal", "ip-10-0-128-7.corp.example")},
			want: "ip-10-0-128-7.corp.example",
		},
		"also bare, where the Machine knows longer names besides": {
			answer: CloudAnswer{Platform: "GCP", Name: "winworker-x2k4f",
				Addresses: addresses("winworker-x2k4f.zone.c.project.internal", "winworker-x2k4f")}, want: "winworker-x2k4f",
		},
		"also when its Machine has no names yet": {answer: CloudAnswer{Platform: "GCP", Name: "winworker-x2k4f",
			Addresses: addresses()}, want: "winworker-x2k4f"},
		"but not by what the cloud did not say": {answer: CloudAnswer{Platform: "AWS", Error: "it answers 401"},
			check: "CloudNameMissing", reason: v1alpha1.ReasonCloudNameUnknown},
		"nor by nothing": {answer: CloudAnswer{Platform: "AWS"}, check: "CloudNameMissing",
			reason: v1alpha1.ReasonCloudNameUnknown},
		"nor by two names": {answer: CloudAnswer{Platform: "AWS", Name: "a.example b.example"},
			check: "CloudNameInvalid", reason: v1alpha1.ReasonCloudNameUnknown},
		"nor by a page of HTML": {answer: CloudAnswer{Platform: "AWS", Name: "<html>"}, check: "CloudNameInvalid",
			reason: v1alpha1.ReasonCloudNameUnknown},
		"nor by what no label can hold": {answer: CloudAnswer{Platform: "AWS", Name: strings.Repeat("a", 60) + ".ec2"},
			check: "CloudNameInvalid", reason: v1alpha1.ReasonCloudNameUnknown},
		"nor by an address": {answer: CloudAnswer{Platform: "AWS", Name: "10.0.128.9"},
			check: "CloudNameInvalid", reason: v1alpha1.ReasonCloudNameUnknown},
		"nor by one that its Machine has not": {
			answer: CloudAnswer{Platform: "AWS", Name: "ip-10-0-0-1.ec2.internal",
				Addresses: addresses("ip-10-0-128-7.ec2.internal")},
			check: "CloudNameMismatch", reason: v1alpha1.ReasonNameConflict,
		},
		"nor by a part of the Machine's name": {
			answer: CloudAnswer{Platform: "GCP", Name: "winworker", Addresses: addresses("winworker-x2k4f")},
			check:  "CloudNameMismatch", reason: v1alpha1.ReasonNameConflict,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, decision := OfCloud(c.answer)
			if got != c.want || decision.Allowed != (c.want != "") || decision.Check != c.check || decision.Reason != c.reason {
				t.Errorf("%q %+v", got, decision)
			}
			if !decision.Allowed && decision.Message == "" {
				t.Error("nothing is said")
			}
		})
	}
}

func TestIsNamedByCloud_OnlyAWSAndGCP(t *testing.T) {
	for platform, want := range map[string]bool{"AWS": true, "GCP": true, "Azure": false, "VSphere": false,
		"Nutanix": false, "None": false, "": false} {
		if IsNamedByCloud(platform) != want {
			t.Errorf("%q: %t", platform, !want)
		}
	}
}

func TestShouldKeepName_RegisteredNameKept(t *testing.T) {
	const host, cloud = "ec2amaz-1", "ip-10-0-128-7.ec2.internal"
	const domain = "ip-10-0-128-7.corp.example"
	for name, c := range map[string]struct {
		claimed    string
		registered bool
		answer     CloudAnswer
		want       bool
	}{
		"that the cloud gives it":                        {cloud, true, CloudAnswer{Name: cloud}, true},
		"whatever the case of letters":                   {cloud, true, CloudAnswer{Name: strings.ToUpper(cloud)}, true},
		"while the metadata service does not answer":     {cloud, true, CloudAnswer{Error: "no route"}, true},
		"while nobody has asked":                         {cloud, false, CloudAnswer{}, true},
		"that an earlier version has given it":           {host, true, CloudAnswer{Name: cloud}, true},
		"when the network has got another domain":        {cloud, true, CloudAnswer{Name: domain}, true},
		"but not a claim to it that nobody has acted on": {host, false, CloudAnswer{Name: cloud}, false},
		"nor one to the name of before":                  {cloud, false, CloudAnswer{Name: domain}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ShouldKeepName(c.claimed, c.registered, c.answer); got != c.want {
				t.Error(got)
			}
		})
	}
}
