# Written by hack/bundle; do not edit.
FROM scratch
LABEL com.redhat.openshift.versions="v4.20-v5.1"
LABEL operators.operatorframework.io.bundle.channel.default.v1="stable"
LABEL operators.operatorframework.io.bundle.channels.v1="stable"
LABEL operators.operatorframework.io.bundle.manifests.v1="manifests/"
LABEL operators.operatorframework.io.bundle.mediatype.v1="registry+v1"
LABEL operators.operatorframework.io.bundle.metadata.v1="metadata/"
LABEL operators.operatorframework.io.bundle.package.v1="windows-machine-config-operator"
COPY manifests /manifests/
COPY metadata /metadata/
