//! Broker settings of TLS, SASL and permissions.

use crate::metadata::config::key::{Key, keys};

/// Sorted by name.
pub static KEYS: &[Key] = keys! {
    "authorizer.class.name" String "" [NotNull] ReadOnly:
        "Class that decides who may do what; empty lets everybody do everything.";
    "connection.failed.authentication.delay.ms" Int "100" [AtLeast(0)] ReadOnly:
        "How long a connection stays open after a failed authentication, to slow down guessing.";
    "connections.max.reauth.ms" Long "0" [Any] ReadOnly:
        "How long an authentication lasts before the client must repeat it; 0 for ever.";
    "delegation.token.expiry.check.interval.ms" Long "3600000" [AtLeast(1)] ReadOnly:
        "How often expired delegation tokens are removed.";
    "delegation.token.expiry.time.ms" Long "86400000" [AtLeast(1)] ReadOnly:
        "How long a delegation token is valid without renewal.";
    "delegation.token.max.lifetime.ms" Long "604800000" [AtLeast(1)] ReadOnly:
        "How long a delegation token can be renewed.";
    "delegation.token.secret.key" Password null [Any] ReadOnly:
        "Secret that signs delegation tokens; the same on all brokers.";
    "principal.builder.class" Class "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder" [Any] PerBroker:
        "Class that names the user behind a connection.";
    "sasl.client.callback.handler.class" Class null [Any] ReadOnly:
        "Java class of the client's side of SASL; Barnabas loads no Java classes.";
    "sasl.enabled.mechanisms" List "GSSAPI" [Distinct] PerBroker:
        "SASL mechanisms that the broker offers.";
    "sasl.jaas.config" Password null [Any] PerBroker:
        "Users and secrets of SASL listeners in JAAS notation.";
    "sasl.kerberos.kinit.cmd" String "/usr/bin/kinit" [Any] PerBroker:
        "Path of the kinit command for Kerberos.";
    "sasl.kerberos.min.time.before.relogin" Long "60000" [Any] PerBroker:
        "Shortest time between two Kerberos logins.";
    "sasl.kerberos.principal.to.local.rules" List "DEFAULT" [Distinct] PerBroker:
        "Rules that make short names of Kerberos principals.";
    "sasl.kerberos.service.name" String null [Any] PerBroker:
        "Kerberos principal that the broker runs under.";
    "sasl.kerberos.ticket.renew.jitter" Double "0.05" [Any] PerBroker:
        "Random part of the time at which a Kerberos ticket is renewed.";
    "sasl.kerberos.ticket.renew.window.factor" Double "0.8" [Any] PerBroker:
        "Part of a Kerberos ticket's life after which it is renewed.";
    "sasl.login.callback.handler.class" Class null [Any] ReadOnly:
        "Java class of SASL logins; Barnabas loads no Java classes.";
    "sasl.login.class" Class null [Any] ReadOnly:
        "Java class that logs in for SASL; Barnabas loads no Java classes.";
    "sasl.login.connect.timeout.ms" Int null [Any] ReadOnly:
        "How long a connection to the identity provider may take.";
    "sasl.login.read.timeout.ms" Int null [Any] ReadOnly:
        "How long the identity provider may take to answer.";
    "sasl.login.refresh.buffer.seconds" Short "300" [Any] PerBroker:
        "How long before its end a login token is renewed at the latest.";
    "sasl.login.refresh.min.period.seconds" Short "60" [Any] PerBroker:
        "Shortest time before a login token is renewed.";
    "sasl.login.refresh.window.factor" Double "0.8" [Any] PerBroker:
        "Part of a login token's life after which it is renewed.";
    "sasl.login.refresh.window.jitter" Double "0.05" [Any] PerBroker:
        "Random part of the time at which a login token is renewed.";
    "sasl.login.retry.backoff.max.ms" Long "10000" [Any] ReadOnly:
        "Longest pause before a login at the identity provider is repeated.";
    "sasl.login.retry.backoff.ms" Long "100" [Any] ReadOnly:
        "First pause before a login at the identity provider is repeated.";
    "sasl.mechanism.controller.protocol" String "GSSAPI" [Any] ReadOnly:
        "SASL mechanism for connections to controllers.";
    "sasl.mechanism.inter.broker.protocol" String "GSSAPI" [Any] PerBroker:
        "SASL mechanism for connections between brokers.";
    "sasl.oauthbearer.allow.unverified.audience" Boolean "false" [Any] ReadOnly:
        "Whether tokens are taken for any audience when none is expected.";
    "sasl.oauthbearer.allow.unverified.issuer" Boolean "false" [Any] ReadOnly:
        "Whether tokens are taken from any issuer when none is expected.";
    "sasl.oauthbearer.assertion.algorithm" String "RS256" [OneOfAnyCase(&["ES256", "RS256"])] ReadOnly:
        "Algorithm that signs a client's own assertion.";
    "sasl.oauthbearer.assertion.claim.aud" String null [Any] ReadOnly:
        "Audience in a client's own assertion.";
    "sasl.oauthbearer.assertion.claim.exp.seconds" Int "300" [Between(0, 86_400)] ReadOnly:
        "How long a client's own assertion is valid.";
    "sasl.oauthbearer.assertion.claim.iss" String null [Any] ReadOnly:
        "Issuer in a client's own assertion.";
    "sasl.oauthbearer.assertion.claim.jti.include" Boolean "false" [Any] ReadOnly:
        "Whether a client's own assertion carries a unique id.";
    "sasl.oauthbearer.assertion.claim.nbf.seconds" Int "60" [Between(0, 3600)] ReadOnly:
        "How far back a client's own assertion begins to be valid.";
    "sasl.oauthbearer.assertion.claim.sub" String null [Any] ReadOnly:
        "Subject in a client's own assertion.";
    "sasl.oauthbearer.assertion.file" String null [Any] ReadOnly:
        "File with a ready-made assertion.";
    "sasl.oauthbearer.assertion.private.key.file" String null [Any] ReadOnly:
        "File with the private key that signs assertions.";
    "sasl.oauthbearer.assertion.private.key.passphrase" Password null [Any] ReadOnly:
        "Passphrase of the private key that signs assertions.";
    "sasl.oauthbearer.assertion.template.file" String null [Any] ReadOnly:
        "File with claims that every assertion carries.";
    "sasl.oauthbearer.client.credentials.client.id" String null [Any] ReadOnly:
        "Client id at the identity provider.";
    "sasl.oauthbearer.client.credentials.client.secret" Password null [Any] ReadOnly:
        "Client secret at the identity provider.";
    "sasl.oauthbearer.clock.skew.seconds" Int "30" [Any] ReadOnly:
        "How far clocks of broker and identity provider may differ.";
    "sasl.oauthbearer.expected.audience" List "" [Distinct] ReadOnly:
        "Audiences of which a token must name one.";
    "sasl.oauthbearer.expected.issuer" String null [Any] ReadOnly:
        "Issuer that a token must name.";
    "sasl.oauthbearer.jwks.endpoint.refresh.ms" Long "3600000" [Any] ReadOnly:
        "How often the identity provider's keys are fetched again.";
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms" Long "10000" [Any] ReadOnly:
        "Longest pause before the identity provider's keys are asked for again.";
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms" Long "100" [Any] ReadOnly:
        "First pause before the identity provider's keys are asked for again.";
    "sasl.oauthbearer.jwks.endpoint.url" String null [Any] ReadOnly:
        "Where the identity provider's keys are found.";
    "sasl.oauthbearer.jwt.retriever.class" Class "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever" [Any] ReadOnly:
        "Java class that fetches tokens; Barnabas loads no Java classes.";
    "sasl.oauthbearer.jwt.validator.class" Class "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator" [Any] ReadOnly:
        "Java class that checks tokens; Barnabas loads no Java classes.";
    "sasl.oauthbearer.scope" String null [Any] ReadOnly:
        "Scope that is asked for with a token.";
    "sasl.oauthbearer.scope.claim.name" String "scope" [Any] ReadOnly:
        "Claim of a token that holds its scope.";
    "sasl.oauthbearer.sub.claim.name" String "sub" [Any] ReadOnly:
        "Claim of a token that holds the user's name.";
    "sasl.oauthbearer.token.endpoint.url" String null [Any] ReadOnly:
        "Where tokens are issued.";
    "sasl.server.callback.handler.class" Class null [Any] ReadOnly:
        "Java class of the server's side of SASL; Barnabas loads no Java classes.";
    "sasl.server.max.receive.size" Int "524288" [Any] ReadOnly:
        "Largest SASL message before a client is authenticated.";
    "security.inter.broker.protocol" String "PLAINTEXT" [OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])] ReadOnly:
        "Security protocol between brokers, where inter.broker.listener.name is not set.";
    "security.providers" String null [Any] ReadOnly:
        "Java security providers; Barnabas loads no Java classes.";
    "ssl.allow.dn.changes" Boolean "false" [Any] ReadOnly:
        "Whether a new certificate may carry another subject.";
    "ssl.allow.san.changes" Boolean "false" [Any] ReadOnly:
        "Whether a new certificate may carry fewer alternative names.";
    "ssl.cipher.suites" List "" [Distinct] PerBroker:
        "Cipher suites that TLS may use; empty allows all good ones.";
    "ssl.client.auth" String "none" [OneOf(&["required", "requested", "none"])] PerBroker:
        "Whether clients must show a certificate: required, requested or none.";
    "ssl.enabled.protocols" List "TLSv1.2,TLSv1.3" [Distinct] PerBroker:
        "TLS versions that connections may use.";
    "ssl.endpoint.identification.algorithm" String "https" [Any] PerBroker:
        "How the broker's own connections check a server's name; empty does not check.";
    "ssl.engine.factory.class" Class null [Any] PerBroker:
        "Java class that makes TLS engines; Barnabas loads no Java classes.";
    "ssl.key.password" Password null [Any] PerBroker:
        "Password of the private key.";
    "ssl.keymanager.algorithm" String "SunX509" [Any] PerBroker:
        "Algorithm of Java's key manager.";
    "ssl.keystore.certificate.chain" Password null [Any] PerBroker:
        "The broker's certificates in PEM.";
    "ssl.keystore.key" Password null [Any] PerBroker:
        "The broker's private key in PEM.";
    "ssl.keystore.location" String null [Any] PerBroker:
        "File with the broker's key and certificates.";
    "ssl.keystore.password" Password null [Any] PerBroker:
        "Password of the file with the broker's key.";
    "ssl.keystore.type" String "JKS" [Any] PerBroker:
        "Format of the file with the broker's key: JKS, PKCS12 or PEM.";
    "ssl.principal.mapping.rules" String "DEFAULT" [Any] ReadOnly:
        "Rules that make user names of certificate subjects.";
    "ssl.protocol" String "TLSv1.3" [Any] PerBroker:
        "TLS version that is tried first.";
    "ssl.provider" String null [Any] PerBroker:
        "Java's TLS provider.";
    "ssl.secure.random.implementation" String null [Any] PerBroker:
        "Java's source of randomness for TLS.";
    "ssl.trustmanager.algorithm" String "PKIX" [Any] PerBroker:
        "Algorithm of Java's trust manager.";
    "ssl.truststore.certificates" Password null [Any] PerBroker:
        "Certificates of trusted authorities in PEM.";
    "ssl.truststore.location" String null [Any] PerBroker:
        "File with certificates of trusted authorities.";
    "ssl.truststore.password" Password null [Any] PerBroker:
        "Password of the file with trusted authorities.";
    "ssl.truststore.type" String "JKS" [Any] PerBroker:
        "Format of the file with trusted authorities: JKS, PKCS12 or PEM.";
};
